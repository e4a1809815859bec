"""Uses the Python client that was generated from /openapi.json: use_client.py FOLDER BASE. Prints "done" when all went well."""
import base64, sys, uuid

sys.path.insert(0, sys.argv[1])
from pawl_client import Client
from pawl_client import models
from pawl_client.api.processes import complete_job, get_instance, poll_jobs, start_instance, upload_definition
from pawl_client.api.worlds import get_blob, list_worlds, send_event, store_blob, create_world, get_world
from pawl_client.api.entities import create_entities, get_entity, import_model, lock_model
from pawl_client.api.lifecycle import create_lifecycle_instance, get_workflow_instance, put_lifecycle_type
from pawl_client.types import File


def want(what, held):
    if not held:
        sys.exit(f'FAIL {what}')


def ask(operation, **arguments):
    """Calls an operation and returns its parsed answer; a status that is not a success ends the program."""
    answer = operation.sync_detailed(client=client, **arguments)
    want(f'{operation.__name__} answered {answer.status_code}: {answer.content[:300]}', answer.status_code < 300)
    return answer.parsed


def processes():
    ask(upload_definition, body=models.ProcessDefinition.from_dict(
        {'id': 'generated', 'name': 'G', 'steps': [{'id': 'work', 'name': 'W', 'type': 'SERVICE_TASK', 'jobType': 'generated-work', 'nextStep': 'end'},
                                                  {'id': 'end', 'name': 'E', 'type': 'END'}]}))
    variables = models.StartRequestVariables()
    variables['amount'] = 7
    started = ask(start_instance, body=models.StartRequest(definition_id='generated', variables=variables))
    want(f'the instance is active: {started}', started.status == 'ACTIVE')
    polled = ask(poll_jobs, body=models.PollRequest(worker_id='w', job_types=['generated-work']))
    want(f'one job is leased: {polled}', len(polled.jobs) == 1 and polled.jobs[0].variables['amount'] == 7)
    ask(complete_job, id=polled.jobs[0].id, body=models.ResultRequest(worker_id='w'))
    ended = ask(get_instance, id=started.id)
    want(f'the instance is completed: {ended}', ended.status == 'COMPLETED')


def entities():
    ask(import_model, data_format='JSON', converter='SAMPLE_DATA', name='generated', version=1, body={'name': 'a'})
    ask(lock_model, name='generated', version=1)
    made = ask(create_entities, format_='JSON', id_or_name='generated', transition_or_version=1, body={'name': 'b'})
    shown = ask(get_entity, id_or_format=uuid.UUID(made[0].entity_ids[0]))
    want(f'the entity is read: {shown}', shown.data['name'] == 'b' and shown.meta.state)


def lifecycle():
    ask(put_lifecycle_type, type_='generated', body=models.LifecycleType.from_dict(
        {'bucket': 'b', 'fields': [{'name': 'id', 'type': 'string', 'tags': ['id']}, {'name': 'phase', 'type': 'string', 'tags': ['phase']}],
         'transitions': {'planned': ['flying'], 'flying': []}}))
    ask(create_lifecycle_instance, type_='generated', id='m1', body=models.CreateLifecycleInstanceBody.from_dict({'phase': 'planned'}))
    shown = ask(get_workflow_instance, type_='generated', id='m1')
    want(f'the instance is read: {shown}', shown['phase'] == 'planned')


def worlds():
    stored = ask(store_blob, body=File(payload=b'hello'))
    answer = get_blob.sync_detailed(client=client, sha=stored.hash_)
    want(f'the blob is read: {answer}', answer.content == b'hello')
    ask(list_worlds)


client = Client(base_url=sys.argv[2])
for part in (processes, entities, lifecycle, worlds):
    part()
print('done')
