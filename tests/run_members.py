#!/usr/bin/env python3
"""Plays every compute-member scenario of tests/vectors/entities-grpc against a real server.

The scenarios are written for pytest; what little they use of it is below, so that Debian's own
python3-grpcio is all that is needed. Arguments: words that a scenario's name must contain.
PAWL_BASE and PAWL_GRPC name a server that already runs; otherwise one is started here.
"""
import importlib, inspect, os, subprocess, sys, tempfile, traceback, types

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCENARIOS = os.path.join(ROOT, 'tests', 'vectors', 'entities-grpc')
SYSTEM_PYTHON = '/usr/bin/python3'


class Skip(Exception):
    pass


class Raises:
    def __init__(self, kind):
        self.kind, self.value = kind, None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        assert kind is not None and issubclass(kind, self.kind), f'expected {self.kind.__name__}'
        self.value = value
        return True


class Mark:
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
    module = types.ModuleType('pytest')
    module.fixture, module.mark, module.raises = fixture, Mark, Raises
    sys.modules['pytest'] = module


def compile_protos(folder):
    """grpc.protos_and_services needs a newer grpcio-tools than Debian has: protoc does the same."""
    import grpc
    sources = os.path.join(SCENARIOS, 'proto')
    names = [n for n in os.listdir(sources) if n.endswith('.proto')]
    subprocess.run(['protoc', '-I', sources, '--python_out', folder, '--grpc_python_out', folder,
                    '--plugin=protoc-gen-grpc_python=/usr/bin/grpc_python_plugin', *names], check=True)
    sys.path.insert(0, folder)

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


def need_grpc():
    """Goes on under Debian's own Python when this one has no grpcio."""
    try:
        import grpc  # noqa: F401
    except ImportError:
        if sys.executable != SYSTEM_PYTHON and os.path.exists(SYSTEM_PYTHON):
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
        sys.exit('python3-grpcio is needed: apt install python3-grpcio protobuf-compiler-grpc')


def prepare():
    """Makes `import member` and `import test_members` work."""
    stand_in()
    sys.path.insert(0, SCENARIOS)
    with tempfile.TemporaryDirectory(prefix='pawl-proto-') as folder:
        compile_protos(folder)
        import member  # noqa: F401


def play(words):
    prepare()
    import test_faults, test_members
    passed = failed = 0
    tests = [(m, name, test) for m in (test_members, test_faults) for name, test in vars(m).items() if name.startswith('test_')]
    for module, name, test in tests:
        if not callable(test) or not all(w in name for w in words):
            continue
        if getattr(test, 'skip', ''):
            print(f'SKIP {name}: {test.skip}')
            continue
        for case in getattr(test, 'cases', [{}]):
            try:
                run_one(module, test, case)
                passed += 1
            except Exception:
                failed += 1
                print(f'FAIL {name} {case or ""}\n{traceback.format_exc(limit=-4)}')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0


def main():
    need_grpc()
    if 'PAWL_BASE' in os.environ:
        return play(sys.argv[1:])
    sys.path.insert(0, os.path.join(ROOT, 'tests'))
    import live
    # A keep-alive short enough to wait for.
    with live.Server(env={'CYODA_KEEPALIVE_INTERVAL': '1s', 'CYODA_KEEPALIVE_TIMEOUT': '3s'}) as server:
        os.environ.update(PAWL_BASE=server.base, PAWL_GRPC=server.grpc, PAWL_KEEPALIVE_S='3')
        return play(sys.argv[1:])


if __name__ == '__main__':
    sys.exit(main())
