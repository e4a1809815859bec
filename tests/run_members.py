#!/usr/bin/env python3
"""Plays every compute-member scenario of tests/vectors/entities-grpc against a real server.

The scenarios are written for pytest. This script replaces the few parts of pytest that they use, so that Debian's own
python3-grpcio is enough. Arguments: words that a scenario's name must contain.
PAWL_BASE and PAWL_GRPC name a server that already runs; otherwise one is started here.
"""
import importlib, inspect, os, sys, tempfile, types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live

SCENARIOS = os.path.join(live.ROOT, 'tests', 'vectors', 'entities-grpc')


class Raises:
    """pytest.raises."""
    def __init__(self, kind):
        self.kind, self.value = kind, None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        assert kind is not None and issubclass(kind, self.kind), f'expected {self.kind.__name__}'
        self.value = value
        return True


class Mark:
    """pytest.mark: parametrize and skipif leave their arguments on the function, and scenarios() reads them."""
    @staticmethod
    def parametrize(name, values):
        def wrap(f):
            f.cases = [{name: v} for v in values]
            return f
        return wrap

    @staticmethod
    def skipif(condition, reason=''):
        def wrap(f):
            f.skip = reason if (eval(condition, {'os': os}) if isinstance(condition, str) else condition) else ''
            return f
        return wrap


def fixture(f):
    f.fixture = True
    return f


def stand_in():
    """Puts this replacement where `import pytest` finds it."""
    module = types.ModuleType('pytest')
    module.fixture, module.mark, module.raises = fixture, Mark, Raises
    sys.modules['pytest'] = module


def compile_protos(folder):
    """Replaces grpc.protos_and_services, which needs a newer grpcio-tools than Debian has, by modules that protoc makes."""
    import grpc
    sources = os.path.join(SCENARIOS, 'proto')
    live.compile_protos(sources, [n for n in os.listdir(sources) if n.endswith('.proto')], folder)

    def protos_and_services(name):
        base = name[:-len('.proto')]
        return importlib.import_module(base + '_pb2'), importlib.import_module(base + '_pb2_grpc')
    grpc.protos_and_services = protos_and_services


def run_one(module, test, case):
    """Makes the fixtures that the test names, runs it, ends them."""
    made, arguments = [], dict(case)
    try:
        for name in inspect.signature(test).parameters:
            if name in arguments:
                continue
            steps = getattr(module, name)()
            arguments[name] = next(steps)
            made.append(steps)
        test(**arguments)
    finally:
        for steps in reversed(made):
            next(steps, None)


def prepare():
    """Makes `import member` and `import test_members` work."""
    stand_in()
    sys.path.insert(0, SCENARIOS)
    with tempfile.TemporaryDirectory(prefix='pawl-proto-') as folder:
        compile_protos(folder)
        import member  # noqa: F401


def scenarios():
    """(name, function) of every scenario that is not skipped, one for each of its cases."""
    prepare()
    import test_faults, test_members
    for module in (test_members, test_faults):
        for name, test in vars(module).items():
            if not name.startswith('test_') or not callable(test):
                continue
            if getattr(test, 'skip', ''):
                print(f'SKIP {name}: {test.skip}')
                continue
            for case in getattr(test, 'cases', [{}]):
                yield f'{name} {case or ""}'.strip(), lambda module=module, test=test, case=case: run_one(module, test, case)


def main():
    live.need_grpc()
    if 'PAWL_BASE' in os.environ:
        live.run_parts(scenarios())
        return live.report()
    # The keep-alive is short so that a test can wait for it.
    with live.Server(env={'CYODA_KEEPALIVE_INTERVAL': '1s', 'CYODA_KEEPALIVE_TIMEOUT': '3s'}) as server:
        os.environ.update(PAWL_BASE=server.base, PAWL_GRPC=server.grpc, PAWL_KEEPALIVE_S='3')
        live.run_parts(scenarios())
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
