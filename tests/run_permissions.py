#!/usr/bin/env python3
"""Every operation with every role on a real server: HTTP, gRPC and the admin address.

The expectation comes from `pawl permissions --json`; the server must refuse exactly those calls whose permission the role
lacks. The table itself is compared with the routes, the .proto files and the event types that exist.
"""
import http.client, json, os, re, subprocess, sys, tempfile, uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import check

live.need_grpc()
import grpc

EVENTS = '/org.cyoda.cloud.api.grpc.CloudEventsService/'
STREAMS = {'/pawl.v1.Workers/Work', '/pawl.v1.Executors/Work', EVENTS + 'startStreaming'}
FILLING = {'{version}': '1', '{format}': 'JSON', '{dataFormat}': 'JSON', '{level}': 'TYPE'}


class Tables:
    """The tables of roles and operations as the program prints them."""

    def __init__(self):
        tables = json.loads(subprocess.run([live.PAWL, 'permissions', '--json'], check=True, capture_output=True, text=True).stdout)
        self.roles = {'': {'open', 'signed-in'}}
        self.aliases = {}
        for row in tables['roles']:
            self.roles[row['role']] = {'open', 'signed-in', *row['permissions']}
            if row['alias']:
                self.aliases[row['role']] = row['alias']
        self.operations = tables['operations']

    def of(self, *groups, method=None):
        return [row for row in self.operations if (not groups or row['group'] in groups) and (row['method'] == 'gRPC') == (method == 'gRPC')]


TABLES = Tables()


def path_of(pattern):
    """A path that matches the pattern and names nothing that exists."""
    return re.sub(r'\{[^}]*\}', lambda hole: FILLING.get(hole[0], str(uuid.UUID(int=7))), pattern)


class Client:
    """One keep-alive connection with the token of one role."""

    def __init__(self, address, token):
        self.connection = http.client.HTTPConnection(address, timeout=30)
        self.headers = {'Authorization': 'Bearer ' + token, 'Content-Type': 'application/json'}

    def __call__(self, method, path, body=b'{'):
        self.connection.request(method, path, None if method == 'GET' else body, self.headers)
        reply = self.connection.getresponse()
        if reply.headers.get_content_type() == 'text/event-stream':
            self.connection.close()
            return reply.status, ''
        return reply.status, reply.read().decode()


def the_table_is_whole():
    with live.Server() as server:
        paths = live.call(server.base, 'GET', '/openapi.json')[1]['paths']
    # Paths that differ only in the names of their parameters are one path there.
    nameless = lambda path: re.sub(r'\{[^}]*\}', '{}', path)
    served = {(method.upper(), nameless(path)) for path, methods in paths.items() for method in methods}
    rows = {(row['method'], nameless(row['target'])) for row in TABLES.of() if row['group'] != 'The admin address'}
    check(f'rows without a route: {rows - served}, routes without a row: {served - rows}', rows == served)
    declared = set()
    for folder, _, names in os.walk(os.path.join(live.ROOT, 'proto')):
        for name in names:
            with open(os.path.join(folder, name)) as f:
                text = f.read()
            package = re.search(r'^package ([\w.]+);', text, re.M)[1]
            for service, body in re.findall(r'^service (\w+) \{(.*?)^\}', text, re.M | re.S):
                declared |= {f'/{package}.{service}/{call}' for call in re.findall(r'\brpc (\w+)', body)}
    calls = {row['target'] for row in TABLES.of(method='gRPC')}
    check(f'gRPC calls: {declared ^ {c for c in calls if " " not in c}}', declared == {c for c in calls if ' ' not in c})
    with open(os.path.join(live.ROOT, 'src/faces/entities/grpc/exchange.cc')) as f:
        events = set(re.findall(r'\{GrpcMethod::\w+,\s*"(\w+)"', f.read()))
    check('events were found in the source', len(events) > 20)
    check(f'events: {events ^ {c.split()[1] for c in calls if " " in c}}', events == {c.split()[1] for c in calls if ' ' in c})


def walk_http(clients, address, operations):
    for role, permissions in TABLES.roles.items():
        client = Client(address, clients[role])
        for row in operations:
            status, text = client(row['method'], path_of(row['target']))
            wanted = row['permission'] not in permissions
            check(f'{role or "no role"} {row["method"]} {row["target"]}: {status} {text[:200]}', (status == 403) == wanted)
            check(f'{row["target"]} accepts the token', status != 401 or row['permission'] == 'open')
            if status == 403:
                check(f'the refusal names a role: {text}', 'is needed' in text)


def grpc_code(channel, row, token, cloud_event):
    target, _, event = row['target'].partition(' ')
    metadata = (('authorization', 'Bearer ' + token),)
    raw = dict(request_serializer=lambda b: b, response_deserializer=lambda b: b)
    message = cloud_event(id='1', source='t', spec_version='1.0', type=event, text_data='{}').SerializeToString() if target.startswith(EVENTS) else b''
    try:
        if target in STREAMS:
            for _ in channel.stream_stream(target, **raw)(iter(()), metadata=metadata, timeout=5):
                pass
        elif target.endswith('Collection'):
            list(channel.unary_stream(target, **raw)(message, metadata=metadata, timeout=5))
        else:
            channel.unary_unary(target, **raw)(message, metadata=metadata, timeout=5)
        return grpc.StatusCode.OK
    except grpc.RpcError as err:
        return err.code()


def walk_grpc(clients, address):
    with tempfile.TemporaryDirectory(prefix='pawl-protos-') as folder:
        live.compile_protos(os.path.join(live.ROOT, 'proto', 'entities'), ['cloudevents.proto'], folder)
        import cloudevents_pb2
        with grpc.insecure_channel(address) as channel:
            for role, permissions in TABLES.roles.items():
                for row in TABLES.of(method='gRPC'):
                    code = grpc_code(channel, row, clients[role], cloudevents_pb2.CloudEvent)
                    wanted = row['permission'] not in permissions
                    check(f'{role or "no role"} {row["target"]}: {code}', (code == grpc.StatusCode.PERMISSION_DENIED) == wanted
                          and code != grpc.StatusCode.UNAUTHENTICATED)


def every_operation_with_every_role():
    with live.JwtServer() as server:
        operator_clients = {role: server.token_for(*([role] if role else [])) for role in TABLES.roles}
        walk_http(operator_clients, server.http, [row for row in TABLES.of() if row['group'] != 'The admin address'])
        walk_http(operator_clients, server.admin, TABLES.of('The admin address'))
        walk_grpc(operator_clients, server.grpc)
        for role, alias in TABLES.aliases.items():
            of_alias = Client(server.http, server.token_for(alias))
            for row in [r for r in TABLES.of() if r['group'] != 'The admin address'][::7]:
                status, _ = of_alias(row['method'], path_of(row['target']))
                check(f'{alias} {row["target"]}: {status}', (status == 403) == (row['permission'] not in TABLES.roles[role]))


def a_tenant_never_operates_the_server():
    with live.JwtServer() as server:
        for role in ('admin', 'ROLE_ADMIN', 'operator'):
            token = server.token_for(role, tenant='other')
            for row in TABLES.of():
                if row['permission'] != 'server.operate':
                    continue
                address = server.admin if row['group'] == 'The admin address' else server.http
                status, text = Client(address, token)(row['method'], path_of(row['target']))
                check(f'{role} of another tenant {row["target"]}: {status} {text}', status == 403)
        made = json.loads(Client(server.http, server.token_for('ROLE_ADMIN', tenant='other'))(
            'POST', '/api/account/m2m', json.dumps({'userId': 'x', 'roles': ['operator', 'ROLE_ADMIN']}).encode())[1])
        token = server.token_of(made['clientId'], made['clientSecret'])
        check('nor does a client that it makes', Client(server.http, token)('GET', '/api/admin/log-level')[0] == 403)


def a_viewer_deletes_no_definition():
    with live.JwtServer() as server:
        admin, viewer = Client(server.http, server.token_for('admin')), Client(server.http, server.token_for('viewer'))
        check('a type', admin('POST', '/api/model/import/JSON/SAMPLE_DATA/thing/1', b'{"a": 1}')[0] == 200)
        check('it is not deleted', viewer('DELETE', '/api/model/thing/1')[0] == 403)
        check('it is there', viewer('GET', '/api/model/export/SIMPLE_VIEW/thing/1')[0] == 200)
        definition = json.dumps({'id': 'd', 'name': 'D', 'steps': [{'id': 'e', 'name': 'E', 'type': 'END'}]}).encode()
        check('nor uploaded', viewer('POST', '/v1/definitions', definition)[0] == 403)
        check('but by an admin', admin('POST', '/v1/definitions', definition)[0] == 201)
        check('and read', viewer('GET', '/v1/definitions/d')[0] == 200)


if __name__ == '__main__':
    live.run_parts([the_table_is_whole, every_operation_with_every_role, a_tenant_never_operates_the_server, a_viewer_deletes_no_definition])
    sys.exit(live.report())
