#!/usr/bin/env python3
"""Installs into a temporary prefix, then builds and runs projects that know Pawl only as installed:
examples/embedded through CMake's find_package, examples/drone through pkg-config.

usage: run_install.py BUILD_FOLDER
"""
import os, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(*command, env=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    if done.returncode != 0:
        sys.exit(f'install: {" ".join(command)} failed\n{done.stdout}')
    return done.stdout


def want(text, part):
    if part not in text:
        sys.exit(f'install: wanted {part!r} in\n{text}')


def embedded(work, prefix):
    run('cmake', '-S', os.path.join(ROOT, 'examples/embedded'), '-B', f'{work}/embedded', f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', f'{work}/embedded')
    program, data = f'{work}/embedded/tickets', f'{work}/tickets-data'
    want(run(program, data), '1 ticket(s) of ann')
    # The second run finds what the first has left.
    want(run(program, data), '2 ticket(s) of ann')


def drone(work, prefix):
    env = {**os.environ, 'PKG_CONFIG_PATH': f'{prefix}/lib/pkgconfig'}
    flags = run('pkg-config', '--cflags', '--libs', 'pawl', env=env).split()
    run('g++', '-Wall', '-Wextra', '-Werror', os.path.join(ROOT, 'examples/drone/drone.cpp'), *flags, '-o', f'{work}/drone')
    out = run(f'{work}/drone', f'{work}/drone-data')
    want(out, 'landing -> completed')
    want(out, 'planning -> flying by operator (cleared by tower)')
    want(out, 'turns verified')


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, 'build')
    work = tempfile.mkdtemp(prefix='pawl-install-')
    try:
        prefix = f'{work}/prefix'
        run('cmake', '--install', build, '--component', 'library', '--prefix', prefix)
        # pkg-config files carry the prefix they were configured for: an own one is told by --define.
        pc = f'{prefix}/lib/pkgconfig/pawl.pc'
        with open(pc) as f:
            lines = f.read().split('\n')
        with open(pc, 'w') as f:
            f.write('\n'.join(f'prefix={prefix}' if l.startswith('prefix=') else l for l in lines))
        embedded(work, prefix)
        drone(work, prefix)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print('install: find_package and pkg-config both build, run and find their data again')


if __name__ == '__main__':
    main()
