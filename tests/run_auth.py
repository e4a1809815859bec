#!/usr/bin/env python3
"""Tokens, tenants and roles against a real server in mode jwt; machine clients survive a restart."""
import base64, os, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live

failures = []


def check(what, held):
    if not held:
        failures.append(what)
        print('FAIL', what)


def token_of(base, client, secret):
    basic = base64.b64encode(f'{client}:{secret}'.encode()).decode()
    return live.call(base, 'POST', '/api/oauth/token', b'grant_type=client_credentials',
                     {'Authorization': 'Basic ' + basic, 'Content-Type': 'application/x-www-form-urlencoded'})


def main():
    folder = tempfile.mkdtemp(prefix='pawl-auth-')
    key = os.path.join(folder, 'key.pem')
    subprocess.run(['openssl', 'genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', key],
                   check=True, stderr=subprocess.DEVNULL)
    env = {'PAWL_JWT_KEY_FILE': key, 'PAWL_BOOTSTRAP_CLIENT_ID': 'boot', 'PAWL_BOOTSTRAP_CLIENT_SECRET': 'first secret',
           'PAWL_BOOTSTRAP_TENANT_ID': 'acme'}
    server = live.Server('--auth', 'jwt', env=env)
    server.start()
    try:
        for path in ('/api/model/', '/v1/definitions', '/v1/instances'):
            status, _ = live.call(server.base, 'GET', path)
            check(f'{path} without a token is 401, not {status}', status == 401)
        status, _ = live.call(server.base, 'GET', '/api/health')
        check('health needs no token', status == 200)
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
        check('exit code 0', server.stop() == 0)
    finally:
        if server.process.poll() is None:
            server.kill()
        server.clean()
        subprocess.run(['rm', '-r', folder])
    refused = subprocess.run([live.PAWL, 'serve', '--data', folder, '--http', '0.0.0.0:0'], capture_output=True, text=True)
    check('no authentication on an open address refuses to start', refused.returncode != 0 and '--insecure' in refused.stderr)
    print(f'{0 if failures else 1} passed, {len(failures)} failed')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
