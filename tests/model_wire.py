"""The calls that run_processes_model.py makes, over REST, gRPC and batches. Each returns an HTTP status; a gRPC code is translated to
the status that it stands for."""
import calendar, os, time

import live

GRPC_CODES = {'OK': 204, 'NOT_FOUND': 404, 'FAILED_PRECONDITION': 409, 'INVALID_ARGUMENT': 400}


def micros(text):
    """Microseconds since 1970 of an RFC 3339 time."""
    whole, _, fraction = text.rstrip('Z').partition('.')
    return calendar.timegm(time.strptime(whole, '%Y-%m-%dT%H:%M:%S')) * 1000000 + int((fraction + '000000')[:6])


def as_doubles(v):
    """The value with all numbers as doubles, which is how gRPC carries them."""
    if isinstance(v, dict):
        return {k: as_doubles(x) for k, x in v.items()}
    if isinstance(v, list):
        return [as_doubles(x) for x in v]
    return float(v) if isinstance(v, int) and not isinstance(v, bool) else v


class Wire:
    """The calls of the contract. `way` chooses the wire: 'rest', 'grpc' or 'batch'."""

    def __init__(self, server):
        self.server = server
        self.open()

    def open(self):
        """Connects. Called again after a restart, because the server then has other ports."""
        import grpc
        from processes import workflow_pb2, workflow_pb2_grpc
        self.grpc, self.pb = grpc, workflow_pb2
        self.stub = workflow_pb2_grpc.WorkflowEngineStub(grpc.insecure_channel(self.server.grpc))

    def rest(self, method, path, body=None):
        return live.call(self.server.base, method, path, body)

    def ask(self, method, **fields):
        """Makes a gRPC call. Returns (status, answer); the answer of a failed call is its error."""
        try:
            message = getattr(self.pb, method + 'Request')()
            for name, value in fields.items():
                if isinstance(value, dict):
                    getattr(message, name).update(value)
                elif isinstance(value, list):
                    getattr(message, name).extend(value)
                else:
                    setattr(message, name, value)
            return 204, getattr(self.stub, method)(message, timeout=20)
        except self.grpc.RpcError as err:
            return GRPC_CODES.get(err.code().name, err.code().name), err

    def batch(self, path, item):
        status, got = self.rest('POST', '/pawl/v1/processes/' + path, {'items': [item]})
        return (got['items'][0]['status'], got['items'][0]) if status == 200 else (status, got)

    def upload(self, document):
        """Uploads a definition over gRPC, whose enums have prefixes that JSON does not have."""
        from google.protobuf.json_format import ParseDict
        steps = [{**s, 'type': 'STEP_TYPE_' + s['type'], 'boundaryEvents': [{**e, 'type': 'BOUNDARY_EVENT_TYPE_TIMER'} for e in s.get('boundaryEvents', [])]} for s in document['steps']]
        try:
            return 204, self.stub.UploadDefinition(self.pb.UploadDefinitionRequest(definition=ParseDict({**document, 'steps': steps}, self.pb.WorkflowDefinition())), timeout=20)
        except self.grpc.RpcError as err:
            return GRPC_CODES.get(err.code().name, err.code().name), err

    def complete(self, way, job, variables):
        if way == 'grpc':
            return self.ask('CompleteJob', job_id=job, worker_id='w', variables_to_set=variables)[0]
        item = {'workerId': 'w', 'variables': variables}
        return self.batch('complete-batch', {'jobId': job, **item})[0] if way == 'batch' else self.rest('POST', f'/v1/jobs/{job}/complete', item)[0]

    def fail(self, way, job, message, retryable):
        if way == 'grpc':
            return self.ask('FailJob', job_id=job, worker_id='w', error_message=message, retryable=retryable)[0]
        item = {'workerId': 'w', 'errorMessage': message, 'retryable': retryable}
        return self.batch('complete-batch', {'jobId': job, **item})[0] if way == 'batch' else self.rest('POST', f'/v1/jobs/{job}/fail', item)[0]

    def task(self, way, instance, step, variables):
        if way == 'grpc':
            return self.ask('CompleteUserTask', instance_id=instance, user_task_step_id=step, completed_by='p', result=variables)[0]
        return self.rest('POST', f'/v1/instances/{instance}/user-tasks/{step}/complete', {'variables': variables})[0]

    def signal(self, way, instance, step, variables):
        if way == 'grpc':
            return self.ask('SignalWait', instance_id=instance, wait_step_id=step, variables=variables)[0]
        return self.rest('POST', f'/v1/instances/{instance}/signals/{step}', variables or None)[0]

    def poll(self, way, types, count, lease_s):
        """Leases jobs. Returns [(job id, execution id, step id, retries left, variables, end of the lease in microseconds)]."""
        if way == 'grpc':
            status, got = self.ask('PollJobs', worker_id='w', job_types=types, max_jobs=count, lease_seconds=lease_s)
            from google.protobuf.json_format import MessageToDict
            return [(j.id, j.step_execution_id, j.step_id, j.retries_remaining, MessageToDict(j.variables), j.lock_expires_at.ToMicroseconds()) for j in got.jobs] if status == 204 else []
        _, got = self.rest('POST', '/v1/jobs/poll', {'workerId': 'w', 'jobTypes': types, 'maxJobs': count, 'leaseSeconds': lease_s})
        return [(j['id'], j['stepExecutionId'], j['stepId'], j['retriesRemaining'], j['variables'], micros(j['lockExpiresAt'])) for j in got['jobs'] or []]

    def shown(self, instance):
        """Reads an instance and its history over gRPC. Returns both with the member names of REST and times in microseconds."""
        from google.protobuf.json_format import MessageToDict
        got = MessageToDict(self.ask('GetInstance', id=instance)[1].instance)
        rows = MessageToDict(self.ask('GetInstanceHistory', id=instance)[1]).get('executions', [])
        return comparable({**got, 'status': got['status'].removeprefix('INSTANCE_STATUS_'), 'currentStepIds': got.get('currentStepIds', []), 'variables': got.get('variables', {})}), [
            comparable({'id': r['id'], 'stepId': r['stepId'], 'type': r['stepType'].removeprefix('STEP_TYPE_'), 'attempt': r['attemptNumber'], 'status': r['status'].removeprefix('STEP_EXECUTION_STATUS_'),
                        'startedAt': r['startedAt'], 'endedAt': r.get('endedAt'), 'reason': r.get('failureReason', '')}) for r in rows]


def as_grpc(got, history):
    """The result that shown() should have, made from the answers of REST. gRPC has no links between instances, and all numbers are doubles."""
    kept = {k: v for k, v in got.items() if k in ('id', 'definitionId', 'definitionVersion', 'status', 'currentStepIds', 'startedAt', 'completedAt', 'failureReason', 'businessKey') and v != ''}
    return comparable({**kept, 'variables': as_doubles(got['variables'])}), [
        comparable({'id': r['ID'], 'stepId': r['StepID'], 'type': r['StepType'], 'attempt': r['AttemptNumber'], 'status': r['Status'], 'startedAt': r['StartedAt'], 'endedAt': r['EndedAt'],
                    'reason': r['FailureReason'] or ''}) for r in history]


def comparable(row):
    """The row with its times in microseconds: the two wires print them with different precision."""
    return {k: micros(v) if k in ('startedAt', 'completedAt', 'endedAt') and v else v for k, v in row.items()}


def prepare(folder):
    """Compiles the .proto file into `folder`, so that `from processes import workflow_pb2` works."""
    sources = os.path.join(live.ROOT, 'proto')
    live.compile_protos(sources, ['processes/workflow.proto'], folder)
