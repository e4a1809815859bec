#!/usr/bin/env python3
"""Installs into a temporary prefix, moves that prefix elsewhere, then builds and runs programs that know Pawl only as
installed: one small program for each public header, once through CMake and once through pkg-config, and the examples. Then
the installed server runs a world with the installed Wasmtime and SDK.

usage: [PAWL_BUILD=BUILD_FOLDER] run_install.py
"""
import os, shutil, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The body of the program for each header: it calls into the library, so that linking is tested too. 0 is success.
CLIENT = {
    'client.h': 'pawl::Client c("127.0.0.1:1", {.patience_ms = 0}); return c.get("x").error().retryable ? 0 : 1;',
    'worker.h': 'pawl::Worker w; return w.run().error().reason == "no-handlers" ? 0 : 1;',
    'member.h': 'pawl::Member m({.grpc = "127.0.0.1:1"}); m.stop(); return m.run() ? 0 : 1;',
    'error.h': 'return pawl::name_of(pawl::Code::denied) == "denied" ? 0 : 1;',
    'result.h': 'pawl::Result<int> r = std::unexpected(pawl::Error{}); return r ? 1 : 0;',
    'version.h': 'return PAWL_VERSION[0] == \'0\' + PAWL_VERSION_MAJOR ? 0 : 1;',
}
EMBED = {
    'engine.h': 'auto e = pawl::Engine::open(); return e && (*e)->last() == 0 && !(*e)->options().tenant.empty() ? 0 : 1;',
    'lifecycle.h': 'pawl::lifecycle::manager m; return m.lookup("x").error() == pawl::lifecycle::errc::entity_not_found ? 0 : 1;',
    'worlds.h': 'struct M final : pawl::worlds::JsonModule { pawl::Result<pawl::worlds::JsonOutput> run(std::string_view, '
                'const pawl::worlds::JsonInput&) const override { return pawl::worlds::JsonOutput{}; } }; '
                'return M().step("step", "not CBOR").has_value() ? 1 : 0;',
    'lifecycle/error.h': 'pawl::Error e(pawl::lifecycle::error{pawl::lifecycle::errc::denied, "x"}); '
                         'return e.code == pawl::Code::denied && e.reason == "denied" ? 0 : 1;',
}


def run(*command, env=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    if done.returncode != 0:
        sys.exit(f'install: {" ".join(command)} failed\n{done.stdout}')
    return done.stdout


def want(text, part):
    if part not in text:
        sys.exit(f'install: wanted {part!r} in\n{text}')


def public_headers(prefix):
    top = f'{prefix}/include/pawl'
    found = sorted(os.path.relpath(os.path.join(folder, name), top) for folder, _, names in os.walk(top) for name in names)
    for header in [*CLIENT, *EMBED]:
        if header not in found:
            sys.exit(f'install: pawl/{header} is not installed')
    return found


def write_programs(work, headers):
    """One program for each public header; returns (name, source, library) rows."""
    rows = []
    os.makedirs(f'{work}/headers')
    for header in headers:
        body = CLIENT.get(header) or EMBED.get(header) or 'return 0;'
        name = header.replace('/', '_').removesuffix('.h')
        source = f'{work}/headers/{name}.cc'
        with open(source, 'w') as f:
            f.write(f'#include <pawl/{header}>\n\nint main() {{ {body} }}\n')
        rows.append((name, source, 'client' if header in CLIENT else 'embed'))
    return rows


def by_cmake(work, prefix, rows):
    with open(f'{work}/headers/CMakeLists.txt', 'w') as f:
        f.write('cmake_minimum_required(VERSION 3.25)\nproject(headers LANGUAGES CXX)\nfind_package(pawl REQUIRED COMPONENTS client embed)\n')
        for name, source, library in rows:
            f.write(f'add_executable({name} {source})\ntarget_link_libraries({name} PRIVATE pawl::{library})\n')
    run('cmake', '-S', f'{work}/headers', '-B', f'{work}/headers-build', f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', f'{work}/headers-build', '-j', str(os.cpu_count()))
    for name, _, _ in rows:
        run(f'{work}/headers-build/{name}')


def pkg_config(prefix, *packages):
    env = {**os.environ, 'PKG_CONFIG_PATH': f'{prefix}/lib/pkgconfig'}
    return run('pkg-config', '--cflags', '--libs', *packages, env=env).split()


def by_pkg_config(work, prefix, rows):
    for name, source, library in rows:
        run('g++', '-Wall', '-Wextra', '-Werror', source, *pkg_config(prefix, f'pawl-{library}'), '-o', f'{work}/{name}')
        run(f'{work}/{name}')


def embedded(work, prefix):
    run('cmake', '-S', os.path.join(ROOT, 'examples/embedded'), '-B', f'{work}/embedded', f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', f'{work}/embedded')
    program, data = f'{work}/embedded/tickets', f'{work}/tickets-data'
    want(run(program, data), '1 ticket(s) of ann')
    # The second run finds what the first has left.
    want(run(program, data), '2 ticket(s) of ann')


def native_world(work, prefix):
    run('cmake', '-S', os.path.join(ROOT, 'examples/native_world'), '-B', f'{work}/native', f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', f'{work}/native')
    program, data = f'{work}/native/native_world', f'{work}/native-data'
    first = run(program, data)
    want(first, 'count 110\n')
    want(first, 'refused: ')
    want(first, 'turns verified')
    # The second run finds what the first has left.
    want(run(program, data), 'count 220\n')


def program(work, prefix):
    """The installed program finds the installed Wasmtime and the installed SDK, and no others."""
    live.PAWL = f'{prefix}/bin/pawl'
    without = {name: value for name, value in os.environ.items() if name not in ('PAWL_WASMTIME', 'PAWL_SDK')}
    run(live.PAWL, 'world', 'init', f'{work}/counter', env=without)
    server = live.Server()
    server.env = without
    with server:
        env = {**without, 'PAWL_SERVER': server.http}
        run(live.PAWL, 'world', 'deploy', f'{work}/counter', env=env)
        run(live.PAWL, 'world', 'send', 'counter', 'counter/Add@1', '{"id": "a", "inc": 7}', env=env)
        want(run(live.PAWL, 'world', 'state', 'counter', 'counter/counter.step@1', '--key', 'a', '--json', env=env), '"count":7')
        with open(f'/proc/{server.process.pid}/maps') as maps:
            loaded = {line.split()[-1] for line in maps if 'wasmtime' in line}
        if loaded != {f'{os.path.realpath(prefix)}/lib/pawl/libwasmtime.so'}:
            sys.exit(f'install: the server loaded {loaded}')


def drone(work, prefix):
    # Lifecycle programs may also be C++20; the last -std counts.
    run('g++', '-Wall', '-Wextra', '-Werror', os.path.join(ROOT, 'examples/drone/drone.cpp'),
        *pkg_config(prefix, 'pawl-embed'), '-std=c++20', '-o', f'{work}/drone')
    out = run(f'{work}/drone', f'{work}/drone-data')
    want(out, 'landing -> completed')
    want(out, 'planning -> flying by operator (cleared by tower)')
    want(out, 'turns verified')


def client_and_engine(work, prefix):
    """A program may use both libraries."""
    source = f'{work}/both.cc'
    with open(source, 'w') as f:
        f.write('#include <pawl/client.h>\n#include <pawl/engine.h>\n\nint main() {\n'
                '  pawl::Client client("127.0.0.1:1", {.patience_ms = 0});\n'
                '  auto engine = pawl::Engine::open();\n  return engine && !client.get("x") ? 0 : 1;\n}\n')
    run('g++', source, *pkg_config(prefix, 'pawl-client', 'pawl-embed'), '-o', f'{work}/both')
    run(f'{work}/both')


def main():
    build = os.environ.get('PAWL_BUILD', os.path.join(ROOT, 'build'))
    work = tempfile.mkdtemp(prefix='pawl-install-')
    try:
        for component in ('library', 'program'):
            run('cmake', '--install', build, '--component', component, '--prefix', f'{work}/installed')
        # The installed tree may be moved.
        prefix = f'{work}/moved'
        os.rename(f'{work}/installed', prefix)
        rows = write_programs(work, public_headers(prefix))
        by_cmake(work, prefix, rows)
        by_pkg_config(work, prefix, rows)
        client_and_engine(work, prefix)
        embedded(work, prefix)
        drone(work, prefix)
        native_world(work, prefix)
        program(work, prefix)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f'install: {len(rows)} public headers and the examples build and run, by find_package and by pkg-config')


if __name__ == '__main__':
    main()
