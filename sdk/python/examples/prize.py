"""An entity with a manual transition whose SYNC processor runs in this program.

python examples/prize.py [URL [GRPC_ADDRESS]] registers the model and its workflow, joins as a member with the tag
approval-service, creates a prize, approves it and prints its state and data.
"""
import json
import logging
import sys
import threading

from pawl import Conflict
from pawl.http import Http
from pawl.member import Member

PRIZE = {'year': '2023', 'category': 'physics', 'notified': False}
LIFECYCLE = {
    'version': '1', 'name': 'prize-lifecycle', 'desc': 'State machine for Nobel Prize entities', 'initialState': 'NEW', 'active': True,
    'states': {
        'NEW': {'transitions': [
            {'name': 'APPROVE', 'next': 'APPROVED', 'manual': True, 'disabled': False, 'processors': [
                {'type': 'EXTERNAL', 'name': 'notify-approval', 'executionMode': 'SYNC', 'config': {
                    'attachEntity': True, 'calculationNodesTags': 'approval-service', 'responseTimeoutMs': 30000}}]},
            {'name': 'AUTO_VALIDATE', 'next': 'VALIDATED', 'manual': False, 'disabled': False,
             'criterion': {'type': 'simple', 'jsonPath': '$.year', 'operatorType': 'EQUALS', 'value': '2024'}}]},
        'APPROVED': {'transitions': []},
        'VALIDATED': {'transitions': []}}}


def register(http: Http) -> None:
    try:
        http.call('POST', '/api/model/import/JSON/SAMPLE_DATA/nobel-prize/1', PRIZE)
        http.call('PUT', '/api/model/nobel-prize/1/lock')
    except Conflict:
        pass  # an earlier run has imported and locked the model
    http.call('POST', '/api/model/nobel-prize/1/workflow/import', {'importMode': 'REPLACE', 'workflows': [LIFECYCLE]})


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    http = Http(sys.argv[1] if len(sys.argv) > 1 else 'http://127.0.0.1:8080')
    register(http)
    member = Member(sys.argv[2] if len(sys.argv) > 2 else '127.0.0.1:9090', tags=['approval-service'])

    @member.processor('notify-approval')
    def notify(call):
        print('approved:', call.data['category'], call.data['year'])
        return {**call.data, 'notified': True}

    joined = threading.Thread(target=member.run, kwargs={'signals': False})
    joined.start()
    member.wait_joined()
    prize = http.call('POST', '/api/entity/JSON/nobel-prize/1', PRIZE)[0]['entityIds'][0]
    http.call('PUT', f'/api/entity/JSON/{prize}/APPROVE', PRIZE)
    entity = http.call('GET', f'/api/entity/{prize}')
    print(entity['meta']['state'], json.dumps(entity['data']))
    member.stop()
    joined.join()


if __name__ == '__main__':
    main()
