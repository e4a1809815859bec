#!/usr/bin/env python3
"""Tokens, tenants and roles against a real server in mode jwt; machine clients survive a restart."""
import base64, http.client, http.server, json, os, socket, ssl, subprocess, sys, tempfile, threading, time, urllib.parse, urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import check

live.need_grpc()
import grpc


def token_of(base, client, secret):
    """Asks for the token of a machine client. Returns (status, body)."""
    basic = base64.b64encode(f'{client}:{secret}'.encode()).decode()
    return live.call(base, 'POST', '/api/oauth/token', b'grant_type=client_credentials',
                     {'Authorization': 'Basic ' + basic, 'Content-Type': 'application/x-www-form-urlencoded'})


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def new_key(path):
    """Writes a private key and returns its public part as a JWK. 65537 is AQAB in base64url."""
    live.make_rsa_key(path)
    text = subprocess.run(['openssl', 'rsa', '-in', path, '-noout', '-modulus'], check=True, capture_output=True, text=True).stdout
    return {'kty': 'RSA', 'n': b64url(bytes.fromhex(text.strip().split('=')[1])), 'e': 'AQAB'}


def signed(path, kid, claims):
    """A token with these claims, signed with the key of that file."""
    text = b64url(json.dumps({'alg': 'RS256', 'kid': kid}).encode()) + '.' + b64url(json.dumps(claims).encode())
    return text + '.' + b64url(subprocess.run(['openssl', 'dgst', '-sha256', '-sign', path], input=text.encode(), check=True, capture_output=True).stdout)


def claims_of(token):
    part = token.split('.')[1]
    return json.loads(base64.urlsafe_b64decode(part + '=' * (-len(part) % 4)))


def kids(base):
    """The ids of the keys that the server publishes."""
    return {k['kid'] for k in live.call(base, 'GET', '/api/.well-known/jwks.json')[1]['keys']}


def check_key_pairs(server, client, auth, other):
    """Key rotation: a new pair signs, older pairs still verify, an invalidated pair does neither, and all of it survives a restart."""
    keys = '/api/oauth/keys/keypair'
    status, first = live.call(server.base, 'GET', keys + '/current', headers=auth)
    check(f'the configured key is the current one: {status} {first}', status == 200 and first['active'])
    status, made = live.call(server.base, 'POST', keys, headers=auth)
    check(f'a pair is issued: {status} {made}', status == 201 and made['active'] and set(made) == {'kid', 'active', 'createdAt'})
    check('it is current', live.call(server.base, 'GET', keys + '/current', headers=auth)[1]['kid'] == made['kid'])
    check('both verify', kids(server.base) == {first['kid'], made['kid']})
    token = token_of(server.base, *client)[1]['access_token']
    head = token.split('.')[0]
    check('it signs', json.loads(base64.urlsafe_b64decode(head + '=' * (-len(head) % 4)))['kid'] == made['kid'])
    fresh = {'Authorization': 'Bearer ' + token}
    opens = lambda headers: live.call(server.base, 'GET', '/api/model/', headers=headers)[0]
    check('old and new tokens open', (opens(auth), opens(fresh)) == (200, 200))
    check('another tenant does not see it', live.call(server.base, 'POST', f"{keys}/{made['kid']}/invalidate", headers=other)[0] in (403, 404))
    check('invalidate', live.call(server.base, 'POST', f"{keys}/{made['kid']}/invalidate", headers=auth)[0] == 200)
    check('its tokens are refused', (opens(auth), opens(fresh)) == (200, 401))
    check('it left the key document', kids(server.base) == {first['kid']})
    server.kill()
    server.start()
    check('an invalid pair stays invalid after kill -9', opens(fresh) == 401)
    check('reactivate', live.call(server.base, 'POST', f"{keys}/{made['kid']}/reactivate", headers=auth)[0] == 200)
    check('its tokens are good again', opens(fresh) == 200)
    server.kill()
    server.start()
    check('it is still the current one after kill -9', live.call(server.base, 'GET', keys + '/current', headers=auth)[1]['kid'] == made['kid'])
    check('the pair is listed without its secret', [set(k) for k in live.call(server.base, 'GET', keys, headers=auth)[1]] == [{'kid', 'active', 'createdAt'}])
    check('delete', live.call(server.base, 'DELETE', f"{keys}/{made['kid']}", headers=auth)[0] == 204)
    check('its tokens are gone', opens(fresh) == 401)
    check('twice is 404', live.call(server.base, 'DELETE', f"{keys}/{made['kid']}", headers=auth)[0] == 404)
    check('unknown is 404', live.call(server.base, 'POST', f'{keys}/nobody/reactivate', headers=auth)[0] == 404)


def check_exchange(server, folder, client, auth, other):
    """Token exchange: a token of a trusted external issuer is exchanged for one of ours, in the same tenant. It gives no access by itself."""
    path, trusted, now = os.path.join(folder, 'partner.pem'), '/api/oauth/keys/trusted', int(time.time())
    jwk = new_key(path)
    claims = {'iss': 'partner', 'sub': 'ann', 'caas_org_id': 'acme', 'user_roles': ['ROLE_USER'], 'iat': now, 'exp': now + 60}

    def swap(token, who=client, kind='urn:ietf:params:oauth:token-type:jwt'):
        form = {'grant_type': 'urn:ietf:params:oauth:grant-type:token-exchange', 'subject_token': token, 'subject_token_type': kind}
        basic = base64.b64encode(f'{who[0]}:{who[1]}'.encode()).decode()
        return live.call(server.base, 'POST', '/api/oauth/token', urllib.parse.urlencode(form).encode(),
                         {'Authorization': 'Basic ' + basic, 'Content-Type': 'application/x-www-form-urlencoded'})

    subject = signed(path, 'partner-1', claims)
    check('an unknown key is invalid_grant', swap(subject) == (400, {'error': 'invalid_grant', 'error_description': 'unknown trusted key'}))
    bad = [{'keyId': 'a/b', 'jwk': jwk}, {'keyId': 'k'}, {'keyId': 'k', 'jwk': {'kty': 'EC'}}, {'keyId': 'k', 'jwk': jwk, 'validTo': 'soon'}]
    check('bad registrations are 400', all(live.call(server.base, 'POST', trusted, body, auth)[0] == 400 for body in bad))
    status, made = live.call(server.base, 'POST', trusted, {'keyId': 'partner-1', 'jwk': jwk, 'audience': 'human', 'issuers': ['partner']}, auth)
    check(f'a key is trusted: {status} {made}', status == 201 and made['kid'] == 'partner-1' and made['active'] and made['audience'] == 'human')
    check('and listed', [k['kid'] for k in live.call(server.base, 'GET', trusted, headers=auth)[1]] == ['partner-1'])
    direct = {'Authorization': 'Bearer ' + signed(path, 'partner-1', {**claims, 'iss': 'cyoda'})}
    check('its tokens by themselves open nothing', live.call(server.base, 'GET', '/api/account', headers=direct)[0] == 401)
    status, body = swap(subject)
    check(f'exchanged: {status} {body}', status == 200 and body['issued_token_type'] == 'urn:ietf:params:oauth:token-type:jwt')
    got = claims_of(body['access_token'])
    check(f'in the name of the user: {got}', got['sub'] == got['caas_user_id'] == 'ann' and got['user_roles'] == ['ROLE_USER'] and got['act'] == {'sub': client[0]})
    status, who = live.call(server.base, 'GET', '/api/account', headers={'Authorization': 'Bearer ' + body['access_token']})
    check(f'the token opens: {who}', status == 200 and who['userAccountInfo']['userId'] == 'ann')
    refused = [swap(subject, kind='x'), swap('nonsense'), swap(subject[:-8]), swap(signed(path, 'partner-1', {**claims, 'iss': 'else'})),
               swap(signed(path, 'partner-1', {**claims, 'exp': now - 60})), swap(signed(path, 'partner-1', {k: v for k, v in claims.items() if k != 'sub'})),
               swap(subject, other)]
    check(f'what is not good is invalid_grant: {refused}', all(r[0] == 400 and r[1]['error'] == 'invalid_grant' for r in refused))
    check('another tenant is denied', swap(signed(path, 'partner-1', {**claims, 'caas_org_id': 'other'}))[0] == 403)
    check('invalidate', live.call(server.base, 'POST', trusted + '/partner-1/invalidate', headers=auth)[0] == 200)
    check('no more', swap(subject)[1].get('error_description') == 'trusted key is inactive')
    check('reactivate', live.call(server.base, 'POST', trusted + '/partner-1/reactivate', headers=auth)[0] == 200)
    server.kill()
    server.start()
    check('trusted after kill -9', swap(subject)[0] == 200)
    check('delete', live.call(server.base, 'DELETE', trusted + '/partner-1', headers=auth)[0] == 204)
    check('unknown is 404', live.call(server.base, 'DELETE', trusted + '/partner-1', headers=auth)[0] == 404)


def tokens_tenants_and_roles(folder):
    """One server in mode jwt, from its bootstrap client on; it is killed and started again in between."""
    key = os.path.join(folder, 'key.pem')
    new_key(key)
    env = {'PAWL_JWT_KEY_FILE': key, 'PAWL_BOOTSTRAP_CLIENT_ID': 'boot', 'PAWL_BOOTSTRAP_CLIENT_SECRET': 'first secret',
           'PAWL_BOOTSTRAP_TENANT_ID': 'acme'}
    with live.Server('--auth', 'jwt', env=env) as server:
        for path in ('/api/model/', '/v1/definitions', '/v1/instances'):
            status, _ = live.call(server.base, 'GET', path)
            check(f'{path} without a token is 401, not {status}', status == 401)
        status, _ = live.call(server.base, 'GET', '/api/health')
        check('health needs no token', status == 200)
        for path in ('/openapi.json', '/help', '/api/help', '/docs'):
            status, body = live.call(server.base, 'GET', path)
            check(f'{path} needs no token', status == 200)
        check('the page is whole in itself', '<code>/api/model/' in body and '://' not in body and '<script' not in body)
        check('a wrong secret is 401', token_of(server.base, 'boot', 'wrong')[0] == 401)
        status, body = token_of(server.base, 'boot', 'first%20secret')
        check('the bootstrap client gets a token', status == 200)
        auth = {'Authorization': 'Bearer ' + body['access_token']}
        check('the token opens the API', live.call(server.base, 'GET', '/api/model/', headers=auth)[0] == 200)
        definition = {'id': 'd', 'name': 'D', 'steps': [{'id': 'e', 'name': 'E', 'type': 'END'}]}
        check('a definition of acme', live.call(server.base, 'POST', '/v1/definitions', definition, auth)[0] == 201)
        status, made = live.call(server.base, 'POST', '/api/account/m2m',
                                 {'tenantId': 'other', 'userId': 'robot', 'roles': ['ROLE_M2M']}, auth)
        check(f'a machine client is made: {status} {made}', status == 201)
        server.kill()
        server.start()
        status, body = token_of(server.base, made['clientId'], made['clientSecret'])
        check(f'the machine client survives kill -9: {status}', status == 200)
        other = {'Authorization': 'Bearer ' + body['access_token']}
        status, body = live.call(server.base, 'GET', '/v1/definitions', headers=other)
        check('another tenant sees nothing of acme', status == 200 and body['total'] == 0)
        check('nor by name', live.call(server.base, 'GET', '/v1/definitions/d', headers=other)[0] == 404)
        check('and may not make clients', live.call(server.base, 'POST', '/api/account/m2m', {}, other)[0] == 403)
        client = ('boot', 'first%20secret')
        check_key_pairs(server, client, auth, other)
        check_exchange(server, folder, client, auth, (made['clientId'], made['clientSecret']))
        check('exit code 0', server.stop() == 0)


def an_open_address_needs_authentication(folder):
    for flag in ('--http', '--grpc', '--admin'):
        refused = subprocess.run([live.PAWL, 'serve', '--data', os.path.join(folder, 'open'), flag, '0.0.0.0:0'], capture_output=True, text=True)
        check(f'no authentication on an open {flag} refuses to start', refused.returncode != 0 and '--insecure' in refused.stderr)


def the_admin_address(folder):
    """With tokens, the admin address answers only health probes to callers without an operator's token."""
    root = os.path.join(folder, 'backups')
    with live.JwtServer('--backup-dir', root) as server:
        ask = lambda method, path, headers=None: live.call(server.admin_base, method, path, headers=headers)[0]
        check('probes are open', [ask('GET', path) for path in ('/livez', '/readyz', '/startupz')] == [200] * 3)
        check('metrics and backups are not', (ask('GET', '/metrics'), ask('POST', '/backup?to=x')) == (401, 401))
        boss = server.boss()
        member = {'Authorization': 'Bearer ' + server.token_for('ROLE_M2M')}
        check('a machine client may not', (ask('GET', '/metrics', member), ask('POST', '/backup?to=x', member)) == (403, 403))
        check('an operator may', (ask('GET', '/metrics', boss), ask('POST', '/backup?to=x', boss)) == (200, 200))
        check('the backup is below the root', os.path.isfile(os.path.join(root, 'x', 'FORMAT')))
        os.symlink(folder, os.path.join(root, 'link'))
        os.symlink(os.path.join(folder, 'planted'), os.path.join(root, 'dangling'))
        for bad in ('', '..', '../y', 'x/../../y', os.path.join(folder, 'y'), 'link/y', 'dangling', 'missing/y', 'x', '%00', 'a%00b', '/'):
            check(f'{bad!r} is refused', ask('POST', '/backup?to=' + bad, boss) == 400)
        check('nothing was written elsewhere', not os.path.exists(os.path.join(folder, 'y')) and not os.path.exists(os.path.join(folder, 'planted')))
    with live.JwtServer('--metrics-open') as server:
        ask = lambda method, path, headers=None: live.call(server.admin_base, method, path, headers=headers)[0]
        check('metrics may be open', (ask('GET', '/metrics'), ask('POST', '/backup?to=x')) == (200, 401))
        check('the default root is in the data folder', ask('POST', '/backup?to=x', server.boss()) == 200 and os.path.isdir(os.path.join(server.folder, 'backups', 'x')))
    with live.JwtServer(env={'PAWL_METRICS_BEARER': 'scrape'}) as server:
        ask = lambda headers=None: live.call(server.admin_base, 'GET', '/metrics', headers=headers)[0]
        check('or have a token of their own', (ask(), ask({'Authorization': 'Bearer scrape'}), ask({'Authorization': 'Bearer scrap'})) == (401, 200, 401))


def raw(address, method, path, headers, body=b''):
    """Sends one request as written. Returns the status and the headers of the answer."""
    connection = http.client.HTTPConnection(address, timeout=20)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in {'Host': address, **headers, 'Content-Length': str(len(body))}.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    reply = connection.getresponse()
    answer = reply.status, dict(reply.headers)
    connection.close()
    return answer


SOCKET = {'Connection': 'Upgrade', 'Upgrade': 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA=='}
READS = ('/v1/definitions', '/api/model/', '/workflows', '/v1/worlds', '/openapi.json', '/', '/api/health', '/healthz', '/no/such/path')


def foreign_headers(address):
    """The headers of requests that a page of another site, or a name of an attacker, makes a browser send."""
    return [{'Origin': 'http://evil.example'}, {'Origin': 'null'}, {'Origin': 'http://127.0.0.1:1'}, {'Origin': 'http://localhost:3000'},
            {'Sec-Fetch-Site': 'cross-site'}, {'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors'},
            {'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'no-cors'}, {'Host': 'evil.example'}, {'Host': 'evil.example:' + address.split(':')[1]},
            {'Origin': 'http://' + address, 'Content-Type': 'text/plain'}, {'Sec-Fetch-Mode': 'navigate', 'Content-Type': 'application/x-www-form-urlencoded'}]


def browsers_of_other_sites(folder):
    definition = json.dumps({'id': 'd', 'name': 'D', 'steps': [{'id': 'e', 'name': 'E', 'type': 'END'}]}).encode()
    for server in (live.Server(), live.JwtServer()):
        with server:
            auth = server.boss() if isinstance(server, live.JwtServer) else {}
            for address, paths in ((server.http, READS), (server.admin, ('/livez', '/readyz', '/metrics'))):
                for headers in foreign_headers(address):
                    wanted = 421 if 'Host' in headers else 403
                    for path in paths:
                        status, got = raw(address, 'GET', path, {**auth, **headers})
                        check(f'{headers} {path}: {status}', status == wanted)
                        check(f'{path} lets nobody read: {got}', 'Access-Control-Allow-Origin' not in got)
            for headers in foreign_headers(server.http):
                wanted = 421 if 'Host' in headers else 403
                for method, path, body in (('POST', '/v1/definitions', definition), ('POST', '/api/oauth/token', b'grant_type=client_credentials'),
                                           ('DELETE', '/api/model/x/1', b''), ('GET', '/workflows/x?stream=true', b''), ('GET', '/v1/worlds/w/journal/stream', b'')):
                    check(f'{headers} {method} {path}', raw(server.http, method, path, {**auth, **headers}, body)[0] == wanted)
                check(f'{headers} a socket', raw(server.http, 'GET', '/workflows/x?stream=true', {**auth, **SOCKET, **headers})[0] == wanted)
                check(f'{headers} a backup', raw(server.admin, 'POST', '/backup?to=x', {**auth, **headers})[0] == wanted)
                asked = {**headers, 'Origin': headers.get('Origin', 'http://evil.example'), 'Access-Control-Request-Method': 'POST'}
                status, got = raw(server.http, 'OPTIONS', '/v1/instances', asked)
                check(f'a preflight gets no leave: {status} {got}', status == wanted and 'Access-Control-Allow-Origin' not in got)
            check('nothing was written', live.call(server.base, 'GET', '/v1/definitions', headers=auth)[1]['total'] == 0 and not os.path.exists(os.path.join(server.folder, 'backups')))
            own = {**auth, 'Origin': server.base, 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Mode': 'cors', 'Content-Type': 'application/json'}
            check('a page of this server may', raw(server.http, 'POST', '/v1/definitions', own, definition)[0] == 201)
            check('so may a program without headers', raw(server.http, 'POST', '/v1/definitions', auth, definition)[0] in (200, 201))
            form = {**auth, 'Content-Type': 'application/x-www-form-urlencoded'}
            check('and curl -d', raw(server.http, 'POST', '/v1/definitions', form, definition)[0] in (200, 201))
            check('by the name localhost', raw(server.http, 'GET', '/v1/definitions', {**auth, 'Host': 'localhost'})[0] == 200)


def allowed_sites_and_names(folder):
    with live.Server('--allowed-origins', 'https://app.example, https://b.example', '--allowed-hosts', 'pawl.example,*.corp.example') as server:
        for path in ('/v1/definitions', '/api/model/', '/workflows', '/v1/worlds'):
            asked = {'Origin': 'https://app.example', 'Sec-Fetch-Site': 'cross-site'}
            status, got = raw(server.http, 'GET', path, asked)
            check(f'{path}: {status} {got}', status == 200 and got.get('Access-Control-Allow-Origin') == 'https://app.example' and 'Origin' in got.get('Vary', ''))
            status, got = raw(server.http, 'OPTIONS', path, {**asked, 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'authorization'})
            check(f'preflight {path}: {status} {got}', status in (200, 204) and got.get('Access-Control-Allow-Origin') == 'https://app.example'
                  and 'authorization' in got.get('Access-Control-Allow-Headers', '').lower())
            status, got = raw(server.http, 'GET', path, {'Origin': 'https://c.example'})
            check(f'others not: {status} {got}', status == 403 and 'Access-Control-Allow-Origin' not in got)
        for host, wanted in (('pawl.example', 200), ('a.corp.example:1', 200), ('corp.example', 421)):
            check(f'the name {host}', raw(server.http, 'GET', '/v1/definitions', {'Host': host})[0] == wanted)
    with live.Server('--allowed-origins', 'https://app.example', '--cors=false') as server:
        check('--cors=false refuses them as well', raw(server.http, 'GET', '/v1/definitions', {'Origin': 'https://app.example'})[0] == 403)


def logins_are_throttled(folder):
    with live.JwtServer() as server:
        victim, other = server.make_client('viewer'), server.make_client('viewer')
        answers = [server.login(victim[0], 'guess')[0] for _ in range(14)]
        check(f'guesses are refused and then put off: {answers}', answers == [401] * 10 + [429] * 4)
        basic = base64.b64encode(f'{victim[0]}:guess'.encode()).decode()
        status, headers = raw(server.http, 'POST', '/api/oauth/token', {'Authorization': 'Basic ' + basic}, b'grant_type=client_credentials')
        check(f'the answer says when: {status} {headers}', status == 429 and 1 <= int(headers['Retry-After']) <= 60)
        status, body = server.login(*victim)
        check(f'the right secret waits as well: {status} {body}', status == 429 and 'too many failed logins' in body['error_description'])
        check('another client does not', server.login(*other)[0] == 200)
        answers = [server.login(f'nobody-{i}', 'guess')[0] for i in range(80)]
        check(f'an address that tries many clients is put off: {answers}', answers[0] == 401 and answers[-1] == 429)
        time.sleep(float(headers['Retry-After']) + 1)
        check('after the wait the right secret logs in', server.login(*victim)[0] == 200)


def tokens_end_with_their_client(folder):
    """Tokens of a client that was deleted, or whose secret was reset, are refused at once; also after kill -9."""
    with live.JwtServer() as server:
        boss = server.boss()
        opens = lambda token: live.call(server.base, 'GET', '/v1/definitions', headers={'Authorization': 'Bearer ' + token})[0]
        deleted, rotated, kept = (server.make_client('viewer') for _ in range(3))
        tokens = [server.token_of(*client) for client in (deleted, rotated, kept)]
        check('all open', [opens(token) for token in tokens] == [200] * 3)
        check('one is deleted', live.call(server.base, 'DELETE', '/api/account/m2m/' + deleted[0], headers=boss)[0] == 204)
        status, fresh = live.call(server.base, 'POST', f'/api/account/m2m/{rotated[0]}/secret/reset', headers=boss)
        check(f'one gets a new secret: {status}', status == 200)
        check('their tokens end at once', [opens(token) for token in tokens] == [401, 401, 200])
        new = server.token_of(fresh['clientId'], fresh['clientSecret'])
        check('the new secret works', opens(new) == 200)
        check('the bootstrap client goes on', live.call(server.base, 'GET', '/api/account', headers=boss)[0] == 200)
        server.kill()
        server.start()
        check('the same after kill -9', [opens(token) for token in (*tokens, new)] == [401, 401, 200, 200])
        check('the bootstrap client goes on after kill -9', live.call(server.base, 'GET', '/api/account', headers=boss)[0] == 200)


class Provider:
    """A small OpenID provider: a discovery document and keys that a test replaces."""

    def __enter__(self):
        provider = self
        self.keys, self.asked = [], 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                provider.asked += 1
                pages = {'/realm/.well-known/openid-configuration': {'issuer': provider.issuer, 'jwks_uri': provider.issuer + '/keys'},
                         '/realm/keys': {'keys': provider.keys}}
                body = json.dumps(pages.get(self.path)).encode()
                self.send_response(200 if self.path in pages else 404)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.issuer = f'http://127.0.0.1:{self.server.server_port}/realm'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def tokens_of_a_provider(folder):
    """Keys come by discovery; a new key is fetched when a token names it; a withdrawn key ends; an outage changes nothing."""
    paths = [os.path.join(folder, f'provider{i}.pem') for i in range(2)]
    jwks = [{**new_key(path), 'kid': f'p{i}', 'use': 'sig', 'alg': 'RS256'} for i, path in enumerate(paths)]
    with Provider() as provider:
        provider.keys = jwks[:1]
        with live.Server('--auth', 'jwt', '--auth-issuer', provider.issuer, '--auth-refresh', '10s', '--operator-tenant', 'acme') as server:
            def opens(i, **changed):
                now = int(time.time())
                claims = {'iss': provider.issuer, 'sub': 'ann', 'caas_org_id': 'acme', 'user_roles': ['viewer'], 'iat': now, 'exp': now + 600, **changed}
                return live.call(server.base, 'GET', '/v1/definitions', headers={'Authorization': 'Bearer ' + signed(paths[i], f'p{i}', claims)})[0]
            check('a token of the provider opens', opens(0) == 200)
            check('roles count', opens(0, user_roles=['worker']) == 403)
            check('another issuer does not', (opens(0, iss='cyoda'), opens(0, iss=provider.issuer + '/')) == (401, 401))
            check('an unknown key does not', opens(1) == 401)
            provider.keys = jwks
            live.until(lambda: opens(1) == 200, 'the new key to be fetched', 30)
            asked = provider.asked
            for _ in range(50):
                live.call(server.base, 'GET', '/v1/definitions', headers={'Authorization': 'Bearer ' + signed(paths[0], 'nobody', {})})
            check(f'unknown keys do not make it ask often: {provider.asked - asked}', provider.asked - asked <= 4)
            provider.keys = jwks[1:]
            live.until(lambda: opens(0) == 401, 'the withdrawn key to end', 30)
            provider.keys = []
            time.sleep(11)
            check('no keys at all is taken for a failure', opens(1) == 200)
        with live.Server('--auth', 'jwt', '--auth-issuer', provider.issuer, '--auth-jwks-url', provider.issuer + '/nothing') as server:
            check('the server starts without the provider', live.call(server.base, 'GET', '/v1/definitions')[0] == 401)
    bad = subprocess.run([live.PAWL, 'serve', '--data', os.path.join(folder, 'bad'), '--auth', 'jwt', '--auth-issuer', 'ftp://x'], capture_output=True, text=True)
    check(f'a bad URL is refused: {bad.stderr}', bad.returncode != 0 and 'http' in bad.stderr)


def the_signing_key_is_replaced(folder):
    """--jwt-old-key: tokens and key pairs of the key before stay valid, and the new key signs."""
    with live.JwtServer() as server:
        boss = server.boss()
        opens = lambda headers: live.call(server.base, 'GET', '/api/account', headers=headers)[0]
        status, pair = live.call(server.base, 'POST', '/api/oauth/keys/keypair', headers=boss)
        check(f'a pair: {status}', status == 201)
        of_pair = server.boss()
        new = os.path.join(folder, 'new.pem')
        live.make_rsa_key(new)
        env = server.env
        server.stop()
        server.env = {**env, 'PAWL_JWT_KEY_FILE': new, 'PAWL_JWT_OLD_KEY_FILE': server.key}
        server.start()
        check('old tokens open', (opens(boss), opens(of_pair)) == (200, 200))
        check('invalidate the pair', live.call(server.base, 'POST', f"/api/oauth/keys/keypair/{pair['kid']}/invalidate", headers=boss)[0] == 200)
        kid = json.loads(base64.urlsafe_b64decode(server.boss()['Authorization'].split(' ')[1].split('.')[0] + '=='))['kid']
        check('the new key signs', kid in kids(server.base) and kid != pair['kid'] and len(kids(server.base)) == 2)
        fresh = server.boss()
        server.stop()
        server.env = {**env, 'PAWL_JWT_KEY_FILE': new}
        server.start()
        check('without the old key its tokens end', (opens(boss), opens(fresh)) == (401, 200))


def streams_end_with_their_client(folder):
    """Event streams and gRPC streams of a client end when it is deleted; those of others go on."""
    with live.JwtServer() as server:
        boss = server.boss()
        status, _ = live.call(server.base, 'PUT', '/pawl/v1/lifecycle/types/thing',
                              {'bucket': 'B', 'fields': [{'name': 'i', 'type': 'string', 'tags': ['id']}, {'name': 'p', 'type': 'string', 'tags': ['phase']}],
                               'transitions': {'a': []}}, boss)
        check(f'a type to watch: {status}', status == 201)

        def watch(headers):
            connection = http.client.HTTPConnection(server.http, timeout=15)
            connection.request('GET', '/workflows/thing?stream=true', headers={**headers, 'Accept': 'text/event-stream'})
            reply = connection.getresponse()
            check(f'a watch begins: {reply.status}', reply.status == 200)
            return reply

        viewer, worker = server.make_client('viewer'), server.make_client('worker')
        of = lambda client: {'Authorization': 'Bearer ' + server.token_of(*client)}
        gone, kept = watch(of(viewer)), watch(boss)
        channel, ended, over = grpc.insecure_channel(server.grpc), threading.Event(), threading.Event()

        def nothing():
            over.wait(60)
            yield from ()

        raw_bytes = dict(request_serializer=lambda b: b, response_deserializer=lambda b: b)
        work = lambda headers: channel.stream_stream('/pawl.v1.Workers/Work', **raw_bytes)(nothing(), metadata=(('authorization', headers['Authorization']),))
        first, second = work(of(worker)), work(boss)
        first.add_done_callback(lambda _: ended.set())
        check('the worker stream stays open', not ended.wait(0.5))
        for client in (viewer, worker):
            check('deleted', live.call(server.base, 'DELETE', '/api/account/m2m/' + client[0], headers=boss)[0] == 204)
        began = time.monotonic()
        gone.read()
        check('its watch ends', time.monotonic() - began < 5)
        check('its worker stream ends', ended.wait(5))
        check('others go on', second.is_active())
        live.call(server.base, 'POST', '/pawl/v1/lifecycle/instances/thing/t1', {'p': 'a'}, boss)
        seen = b''
        while b't1' not in seen:  # the connection times out when no event comes
            seen += kept.read1(4096)
        check('and get events', b't1' in seen)
        second.cancel()
        over.set()
        channel.close()
        kept.close()


def a_stream_that_begins_late_ends_with_its_client(folder):
    """A watch waits behind a long poll of the same connection. Its client is deleted meanwhile: the watch shows nothing."""
    with live.JwtServer() as server:
        boss = server.boss()
        type = {'bucket': 'B', 'fields': [{'name': 'i', 'type': 'string', 'tags': ['id']}, {'name': 'p', 'type': 'string', 'tags': ['phase']}], 'transitions': {'a': []}}
        check('a type to watch', live.call(server.base, 'PUT', '/pawl/v1/lifecycle/types/thing', type, boss)[0] == 201)
        for name, upgrade in (('events', {'Accept': 'text/event-stream'}), ('socket', SOCKET)):
            client = server.make_client('ROLE_ADMIN')
            head = f'Host: localhost\r\nAuthorization: Bearer {server.token_of(*client)}\r\n'
            poll = json.dumps({'workerId': 'w', 'jobTypes': ['j'], 'maxWaitMs': 2000})
            lines = ''.join(f'{k}: {v}\r\n' for k, v in upgrade.items())
            with socket.create_connection(server.http.split(':'), timeout=10) as s:
                s.sendall(f'POST /v1/jobs/poll HTTP/1.1\r\n{head}Content-Length: {len(poll)}\r\n\r\n{poll}'
                          f'GET /workflows/thing?stream=true HTTP/1.1\r\n{head}{lines}\r\n'.encode())
                time.sleep(0.5)
                check('deleted', live.call(server.base, 'DELETE', '/api/account/m2m/' + client[0], headers=boss)[0] == 204)
                time.sleep(2)
                live.call(server.base, 'POST', '/pawl/v1/lifecycle/instances/thing/secret-' + name, {'p': 'a'}, boss)
                seen = b''
                s.settimeout(2)
                try:
                    while piece := s.recv(4096):
                        seen += piece
                except OSError:
                    pass
                check(f'a late watch of {name} shows nothing: {seen[-200:]}', b'HTTP/1.1 200' in seen and b'secret' not in seen)


def tls_on_every_address(folder):
    key, certificate = live.make_certificate(folder)
    with live.JwtServer('--tls-certificate', certificate, '--tls-key', key) as server:
        for address in (server.http, server.admin):
            with socket.create_connection(address.split(':')) as plain:
                plain.settimeout(10)
                plain.sendall(b'GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
                try:
                    got = plain.recv(100)
                except ConnectionError:
                    got = b''
                check(f'{address} does not speak plain HTTP: {got}', not got.startswith(b'HTTP'))
        trusted = ssl.create_default_context(cafile=certificate)
        check('the admin address has the certificate', urllib.request.urlopen(server.admin_base + '/livez', context=trusted).read() == b'ok')


def main():
    with tempfile.TemporaryDirectory(prefix='pawl-auth-') as folder:
        live.run_parts([(part.__name__, lambda part=part: part(folder)) for part in (tokens_tenants_and_roles, an_open_address_needs_authentication, the_admin_address, browsers_of_other_sites, allowed_sites_and_names, logins_are_throttled, tokens_end_with_their_client, streams_end_with_their_client, a_stream_that_begins_late_ends_with_its_client, tokens_of_a_provider,
                                                                                          the_signing_key_is_replaced, tls_on_every_address)])
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
