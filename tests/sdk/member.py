"""member.py GRPC TAG is the compute member that tests/run_sdk.py starts. Its handlers have the same names as in check.cc.

PAWL_CLIENT_ID, PAWL_CLIENT_SECRET and PAWL_URL are set when the server requires a token."""
import logging
import os
import sys
import time

from pawl import Credentials
from pawl.member import Member

logging.basicConfig(level=logging.WARNING)
ID = os.environ.get('PAWL_CLIENT_ID')
TOKEN = Credentials(os.environ['PAWL_URL'], ID, os.environ['PAWL_CLIENT_SECRET']) if ID else None
member = Member(sys.argv[1], tags=[sys.argv[2]], token=TOKEN)


@member.processor('mark')
def mark(call):
    return {**call.data, 'marked': True}


@member.processor('slow')
def slow(call):
    time.sleep(1)
    return {**call.data, 'marked': True}


@member.processor('child')
def child(call):
    """Creates, patches and reads another entity inside the transaction of the call."""
    reply = call.ask('EntityCreateRequest', {'dataFormat': 'JSON', 'payload': {
        'model': call.meta['modelKey'], 'data': {'name': 'child', 'good': False, 'marked': False, 'child': ''}}})
    child_id = reply['transactionInfo']['entityIds'][0]
    call.ask('EntityPatchRequest', {'payload': {'entityId': child_id, 'data': {'name': 'child'}}})
    assert call.ask('EntityGetRequest', {'entityId': child_id})['payload']['data']['name'] == 'child'
    return {**call.data, 'child': child_id}


@member.processor('reject')
def reject(call):
    raise ValueError('after all, no')


@member.criterion('is-good')
def is_good(call):
    return call.data['good']


@member.schedule('soon')
def soon(call):
    if call.data['ms'] < 0:
        raise ValueError('it is too late')
    return {'fireAfterMs': call.data['ms'], 'expireAfterMs': 60_000}


member.run()
