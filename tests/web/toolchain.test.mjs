// How the modules were compiled and linked, as far as it can be seen in them and in the commands.
import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import {existsSync, readdirSync, readFileSync, realpathSync} from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import {fileURLToPath} from 'node:url';

import {load, PACKAGE, printed} from './package.mjs';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const COMMANDS = path.join(ROOT, 'build/wasm/compile_commands.json');
const NAMES = ['tenon.wasm', 'tenon.relaxed.wasm'];
const bytesOf = (name) => readFileSync(path.join(PACKAGE, 'dist', name));
// Node.js 20 does not compile relaxed SIMD.
const modules = await Promise.all(
  NAMES.map((name) => WebAssembly.compile(bytesOf(name)).catch(() => undefined)),
);

// WB-113
test('all sources are compiled for the same features', {skip: !existsSync(COMMANDS)}, () => {
  const commands = JSON.parse(readFileSync(COMMANDS));
  const ours = commands.filter(({file}) => /^(src|web)\//.test(path.relative(ROOT, file)));
  assert.ok(ours.length > 500);
  const needed = [
    '--target=wasm32-wasi', '-std=c++20', '-fwasm-exceptions', '-msimd128', '-mbulk-memory',
    '-matomics', '-mmutable-globals', '-ftls-model=local-exec', '-fvisibility=hidden',
    '-ffunction-sections', '-fdata-sections',
  ];
  for (const {command, file, output = ''} of ours) {
    const flags = command.split(' ');
    for (const flag of needed) assert.ok(flags.includes(flag), `${file}: ${flag}`);
    // The machine's own headers would bring its C library.
    assert.ok(!/-(I|isystem) ?\/usr\/(local\/)?include( |$)/.test(command), file);
    assert.ok(!flags.includes('-fPIC'), file);
    const isRelaxed = (output + command).includes('tenon_relaxed_kernels');
    assert.equal(flags.includes('-mrelaxed-simd'), isRelaxed, file);
  }
});

// ---- where the build's tools, headers and libraries come from ----

const BUILD = path.dirname(COMMANDS);
const DPKG = '/var/lib/dpkg/info'; // the list of each package's files
const outputOf = (program, ...args) =>
  execFileSync(program, args, {encoding: 'utf8', cwd: BUILD, maxBuffer: 2 ** 28});
const withDebian = {
  skip: !(existsSync(COMMANDS) && existsSync(DPKG)) && 'needs the build, on Debian',
};

// The packages in an array of the script `dev`.
function packagesOf(array) {
  const script = readFileSync(path.join(ROOT, 'dev'), 'utf8');
  const [, names] = new RegExp(`readonly ${array}=\\(([^)]*)\\)`).exec(script);
  return names.replaceAll(/#.*/g, '').trim().split(/\s+/);
}

// The headers outside of the project that the module's objects were compiled with.
function headersOfModule() {
  const headers = new Set();
  let isOurs = false;
  for (const line of outputOf('ninja', '-t', 'deps').split('\n')) {
    if (!line.startsWith(' ')) isOurs = /^(src|web)\//.test(line);
    else if (isOurs) headers.add(line.trim());
  }
  const files = [...headers].map((file) => realpathSync(path.resolve(BUILD, file)));
  return files.filter((file) => path.relative(ROOT, file).startsWith('..'));
}

// The linker's command for a module: the compiler's driver prints it.
function linkCommand(module) {
  const [driver] = outputOf('ninja', '-t', 'commands', module).trim().split('\n').slice(-1);
  const [command] = driver.replace(/^: && /, '').split(' && ');
  const {stderr} = spawnSync('sh', ['-c', `${command} -###`], {encoding: 'utf8', cwd: BUILD});
  return [...stderr.trim().split('\n').at(-1).matchAll(/"([^"]*)"/g)].map(([, word]) => word);
}

// The linker and the files outside of the project that it gets.
function linkedFiles([linker, ...words]) {
  const folders = words.filter((word) => word.startsWith('-L')).map((word) => word.slice(2));
  const libraries = words
    .filter((word) => word.startsWith('-l'))
    .map((word) => {
      const paths = folders.map((folder) => path.join(folder, `lib${word.slice(2)}.a`));
      return paths.find(existsSync) ?? assert.fail(`${word} is in none of ${folders}`);
    });
  return [linker, ...words.filter((word) => word.startsWith('/')), ...libraries];
}

// The files of a Debian package, none if it is not there.
function filesOf(name) {
  const list = readdirSync(DPKG).find(
    (file) => file.endsWith('.list') && file.replace(/(:\w+)?\.list$/, '') === name,
  );
  return list === undefined ? [] : readFileSync(path.join(DPKG, list), 'utf8').split('\n');
}

const named = [...packagesOf('build_packages'), ...packagesOf('wasm_packages')];

const compilers = () => [
  ...new Set(JSON.parse(readFileSync(COMMANDS)).map(({command}) => /\S*clang\S*/.exec(command)[0])),
];

// WB-111
test('the module is made of Debian packages alone, those that `dev` names', withDebian, () => {
  const linked = linkedFiles(linkCommand('web/tenon.wasm'));
  const files = new Set(
    [...compilers(), ...headersOfModule(), ...linked].map((file) => realpathSync(file)),
  );
  const used = new Set();
  const OF_CLANG = 'libclang-common-19-dev'; // comes with it
  for (const name of [...named, OF_CLANG]) {
    for (const file of filesOf(name)) {
      if (files.delete(file)) used.add(name);
    }
  }
  assert.deepEqual([...files], []); // of no such package
  for (const name of [
    'clang-19', 'lld-19', 'libc++-19-dev-wasm32', 'libc++abi-19-dev-wasm32',
    'libclang-rt-19-dev-wasm32', 'wasi-libc', 'libhwy-dev', 'libfmt-dev', 'libexpected-dev',
    'libprotozero-dev',
  ]) {
    assert.ok(used.has(name), `${name} is not used`);
  }
});

// WB-111
test('npm gives what makes the package', () => {
  const manifest = readFileSync(path.join(ROOT, 'web/package.json'));
  const {dependencies, devDependencies} = JSON.parse(manifest);
  assert.equal(dependencies, undefined);
  assert.deepEqual(Object.keys(devDependencies).sort(), ['binaryen', 'esbuild', 'typescript']);
});

// WB-112
test('nothing is of Emscripten: exceptions are thrown by the project itself', withDebian, () => {
  assert.deepEqual(named.filter((name) => name.includes('emscripten')), []);
  assert.deepEqual(compilers().map((file) => path.basename(file)), ['clang++-19']);
  for (const module of ['web/tenon.wasm', 'web/tenon.relaxed.wasm']) {
    const words = linkCommand(module);
    assert.equal(path.basename(words[0]), 'wasm-ld-19');
    assert.deepEqual(words.filter((word) => /emscripten|-mt-except/.test(word)), []);
  }
  // The C++ library's archives have no function that throws; base has it.
  const definesThrow = (archive) =>
    / T __cxa_throw$/m.test(outputOf('llvm-nm-19', '--defined-only', '--quiet', archive));
  assert.ok(definesThrow('src/base/libtenon_base.a'));
  const archives = linkedFiles(linkCommand('web/tenon.wasm')).filter((file) => file.endsWith('.a'));
  assert.ok(archives.some((file) => file.endsWith('libc++abi.a')));
  for (const archive of archives) assert.ok(!definesThrow(archive), archive);
});

// ---- the modules ----

// The calls of WASI that the module may make: of clocks, random numbers, the console, and files.
const ASKED = [
  'clock_res_get', 'clock_time_get', 'environ_get', 'environ_sizes_get', 'fd_close', 'fd_fdstat_get',
  'fd_fdstat_set_flags', 'fd_filestat_get', 'fd_pread', 'fd_prestat_dir_name', 'fd_prestat_get',
  'fd_read', 'fd_seek', 'fd_sync', 'fd_write', 'path_filestat_get', 'path_open', 'path_rename',
  'path_unlink_file', 'poll_oneoff', 'proc_exit', 'random_get',
];

// The limits of the memory that a module imports: flags, pages at first, pages at most.
function memoryImport(bytes) {
  let at = 8;
  const number = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  const text = () => {
    const size = number();
    at += size;
    return new TextDecoder().decode(bytes.subarray(at - size, at));
  };
  const IMPORTS = 2;
  for (;;) {
    const id = bytes[at++];
    const size = number();
    if (id === IMPORTS) break;
    at += size;
  }
  for (let count = number(); count > 0; --count) {
    const [module, name, kind] = [text(), text(), bytes[at++]];
    if (kind === 2) return {module, name, flags: bytes[at++], initial: number(), maximum: number()};
    if (kind === 0) number();
    else assert.fail(`import ${module}.${name} of kind ${kind}`);
  }
  return undefined;
}

for (const [i, name] of NAMES.entries()) {
  // WB-114
  test(`${name} shares its memory and has no entry`, (t) => {
    const SHARED_WITH_MAXIMUM = 3;
    assert.deepEqual(memoryImport(bytesOf(name)), {
      module: 'env', name: 'memory', flags: SHARED_WITH_MAXIMUM, initial: 1024, maximum: 65536,
    });
    if (modules[i] === undefined) return t.diagnostic('this engine does not compile it');
    const kinds = new Map(WebAssembly.Module.exports(modules[i]).map(({name, kind}) => [name, kind]));
    assert.equal(kinds.get('memory'), 'memory');
    for (const own of ['_initialize', '__wasm_init_tls']) assert.equal(kinds.get(own), 'function');
    for (const own of ['__stack_pointer', '__tls_size', '__tls_align']) {
      assert.equal(kinds.get(own), 'global');
    }
    assert.ok(!kinds.has('_start') && !kinds.has('main') && !kinds.has('__main_void'));
    // All other exports are the shim's. No names of functions are left.
    const known = ['memory', '_initialize', '__wasm_init_tls', '__stack_pointer', '__tls_size', '__tls_align'];
    const others = [...kinds.keys()].filter((each) => !known.includes(each));
    assert.deepEqual(others.filter((each) => !each.startsWith('tenon_')), []);
    assert.equal(WebAssembly.Module.customSections(modules[i], 'name').length, 0);
  });

  // WB-116
  test(`${name} asks little of its host`, (t) => {
    if (modules[i] === undefined) return t.diagnostic('this engine does not compile it');
    const imports = WebAssembly.Module.imports(modules[i]).filter(({kind}) => kind === 'function');
    assert.ok(imports.every(({module}) => module === 'wasi_snapshot_preview1'));
    const names = imports.map((each) => each.name);
    assert.deepEqual(names.filter((each) => !ASKED.includes(each)), []);
  });
}

// WB-116
test('exit and write end in the log', async () => {
  const {wasiImports} = await load('wasi');
  const {WrittenFiles} = await load('written-files');
  const memory = new WebAssembly.Memory({initial: 1, maximum: 1, shared: true});
  const files = new WrittenFiles(memory);
  const calls = wasiImports(modules[0], memory, () => {}, files).wasi_snapshot_preview1;
  const text = new TextEncoder().encode('one\ntwo\n');
  new Uint8Array(memory.buffer).set(text, 64);
  const view = new DataView(memory.buffer);
  view.setUint32(0, 64, true);
  view.setUint32(4, text.length, true);
  for (const [file, method] of [[1, 'log'], [2, 'error']]) {
    const lines = await printed(method, () => assert.equal(calls.fd_write(file, 0, 1, 16), 0));
    assert.deepEqual(lines, ['one', 'two']);
    assert.equal(view.getUint32(16, true), text.length);
  }
  assert.throws(() => calls.proc_exit(3), /exited with status 3/);
});
