"""An order that is charged and shipped: python examples/worker.py [URL].

The program deploys the workflow, starts one order, runs its jobs and waits until it is done.
"""
import logging
import sys
import threading

from pawl import Client, JobFailed, Worker

ORDER = {
    'id': 'example-order', 'name': 'Order', 'steps': [
        {'id': 'charge', 'name': 'Charge the card', 'type': 'SERVICE_TASK', 'jobType': 'charge', 'retryCount': 3, 'nextStep': 'ship'},
        {'id': 'ship', 'name': 'Ship the parcel', 'type': 'SERVICE_TASK', 'jobType': 'ship', 'nextStep': 'done'},
        {'id': 'done', 'name': 'Done', 'type': 'END'}]}


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    url = sys.argv[1] if len(sys.argv) > 1 else 'http://127.0.0.1:8080'
    worker = Worker(url, concurrency=4, max_wait_ms=1000)

    @worker.job('charge')
    def charge(job):
        if job.variables['amount'] <= 0:
            raise JobFailed('there is nothing to charge')  # no retry helps
        return {'chargeId': 'ch-' + job.id}  # the job's id as the key: charging again is harmless

    @worker.job('ship')
    def ship(job):
        return {'parcel': 'P-' + job.variables['chargeId'][-4:]}

    client = Client(url)
    client.deploy(ORDER)
    order = client.start('example-order', {'amount': 40}, business_key='order-1001')
    working = threading.Thread(target=worker.run, kwargs={'signals': False})
    working.start()
    done = client.wait(order.id)
    print(done.status, done.variables)
    worker.stop()
    working.join()


if __name__ == '__main__':
    main()
