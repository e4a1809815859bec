#!/usr/bin/env python3
"""A small S3-compatible server for tests: objects in memory, PUT with If-None-Match, lists of three names a page. Each request must
carry a valid signature (AWS signature version 4), which this file computes on its own. Prints its port and serves until it is killed."""
import datetime, hashlib, hmac, http.server, os, sys, threading, urllib.parse
from xml.sax.saxutils import escape

KEY_ID, SECRET, REGION = 'test-id', 'secret/+key', 'eu-test-1'
PAGE = 3
objects, attempts, lock = {}, {}, threading.Lock()


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def expected_signature(handler, body, fields):
    """The signature of the request as it arrived, by the published description."""
    path, _, query = handler.path.partition('?')
    pairs = sorted(tuple((part.split('=', 1) + [''])[:2]) for part in query.split('&') if part)
    signed = fields['SignedHeaders'].split(';')
    lines = ''.join(f'{name}:{" ".join(handler.headers[name].split())}\n' for name in signed)
    canonical = '\n'.join([handler.command, path, '&'.join(f'{name}={value}' for name, value in pairs), lines,
                           ';'.join(signed), hashlib.sha256(body).hexdigest()])
    _, day, region, service, end = fields['Credential'].split('/')
    key = digest(digest(digest(digest(b'AWS4' + SECRET.encode(), day), region), service), end)
    text = '\n'.join(['AWS4-HMAC-SHA256', handler.headers['x-amz-date'], f'{day}/{region}/{service}/{end}',
                      hashlib.sha256(canonical.encode()).hexdigest()])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def why_refused(handler, body):
    """The error code of a request whose signature is not right, or None."""
    kind, _, rest = handler.headers.get('Authorization', '').partition(' ')
    fields = dict(part.strip().split('=', 1) for part in rest.split(',') if '=' in part)
    if kind != 'AWS4-HMAC-SHA256' or set(fields) != {'Credential', 'SignedHeaders', 'Signature'}:
        return 'AccessDenied'
    key_id, day, region, service, end = (fields['Credential'].split('/') + [''] * 5)[:5]
    if (key_id, region, service, end) != (KEY_ID, REGION, 's3', 'aws4_request'):
        return 'InvalidAccessKeyId'
    needed = {'host', 'x-amz-date', 'x-amz-content-sha256'} | ({'if-none-match'} if handler.headers.get('If-None-Match') else set())
    if not needed <= set(fields['SignedHeaders'].split(';')):
        return 'AccessDenied'
    if handler.headers['x-amz-content-sha256'] != hashlib.sha256(body).hexdigest():
        return 'XAmzContentSHA256Mismatch'
    if not hmac.compare_digest(expected_signature(handler, body, fields), fields['Signature']):
        return 'SignatureDoesNotMatch'
    sent = datetime.datetime.strptime(handler.headers['x-amz-date'], '%Y%m%dT%H%M%SZ').replace(tzinfo=datetime.timezone.utc)
    if abs((datetime.datetime.now(datetime.timezone.utc) - sent).total_seconds()) > 900 or sent.strftime('%Y%m%d') != day:
        return 'RequestTimeTooSkewed'
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def answer(self, status, body=b''):
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, code):
        self.answer(status, f'<Error><Code>{code}</Code></Error>'.encode())

    def serve(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        code = why_refused(self, body)
        if code:
            return self.refuse(403, code)
        path, _, query = self.path.partition('?')
        bucket, _, name = urllib.parse.unquote(path).lstrip('/').partition('/')
        if bucket != 'bucket':
            return self.refuse(404, 'NoSuchBucket')
        with lock:
            attempt = attempts[self.command, name] = attempts.get((self.command, name), 0) + 1
        if name.startswith('flaky') and attempt <= 2:
            return self.refuse(503, 'SlowDown')
        return getattr(self, 'serve_' + self.command)(name, body, urllib.parse.parse_qs(query), attempt)

    def serve_PUT(self, name, body, _query, attempt):
        with lock:
            taken = name in objects and self.headers.get('If-None-Match') == '*'
            if not taken:
                objects[name] = body
        if name.startswith('lost') and attempt == 1:
            self.close_connection = True  # carried out, and no answer
            return None
        return self.refuse(412, 'PreconditionFailed') if taken else self.answer(200)

    def serve_GET(self, name, _body, query, _attempt):
        if name:
            with lock:
                found = objects.get(name)
            return self.refuse(404, 'NoSuchKey') if found is None else self.answer(200, found)
        if query.get('list-type') != ['2']:
            return self.refuse(400, 'InvalidRequest')
        prefix, after = query.get('prefix', [''])[0], query.get('continuation-token', ['<'])[0][1:]
        with lock:
            names = sorted(key for key in objects if key.startswith(prefix) and key > after)
        keys = ''.join(f'<Contents><Key>{escape(key)}</Key><Size>{len(objects[key])}</Size></Contents>' for key in names[:PAGE])
        more = f'<NextContinuationToken>&lt;{escape(names[PAGE - 1])}</NextContinuationToken>' if len(names) > PAGE else ''
        return self.answer(200, f'<ListBucketResult><Name>bucket</Name>{keys}{more}</ListBucketResult>'.encode())

    def serve_DELETE(self, name, _body, _query, _attempt):
        with lock:
            objects.pop(name, None)
        return self.answer(204)

    do_GET = do_PUT = do_DELETE = serve

    def log_message(self, *_args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


if __name__ == '__main__':
    server = Server(('127.0.0.1', 0), Handler)
    parent = os.getppid()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    # Ends with the test, however that ends.
    while os.getppid() == parent:
        threading.Event().wait(0.5)
    sys.exit(0)
