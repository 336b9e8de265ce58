// Workers leave the heap alone: with tenon.checked.wasm, which traps where one does not, in
// processes of their own. test_workers.py runs kernels on it.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {existsSync} from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import {pathToFileURL} from 'node:url';

import {CHECKED, PACKAGE} from './package.mjs';

const DEADLINE_MS = 60_000;
const skip = !existsSync(CHECKED) && 'needs the build: ./dev build wasm';

// Runs loops that use the heap on a module, until one fails or the workers must have taken part.
function useHeapInLoops(module, threads) {
  const program = `
    import {readFileSync} from 'node:fs';
    const source = (name) => import('${pathToFileURL(path.join(PACKAGE, 'dist/src/'))}' + name);
    const {env} = await source('index.js');
    const {loadCore} = await source('core.js');
    env.wasm.numThreads = ${threads};
    env.wasm.wasmBinary = readFileSync(${JSON.stringify(module)});
    const core = await loadCore();
    try {
      for (let i = 0; i < 200; ++i) {
        core.call('tenon_use_heap_in_loop', 2000);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      console.log('all loops ended');
    } catch (error) {
      console.log(error.message);
      await new Promise((resolve) => setTimeout(resolve, 500)); // until the worker has told why
    }
    process.exit();`;
  return spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    timeout: DEADLINE_MS,
  });
}

// WB-41
test('a debug build stops a worker that uses the heap', {skip}, () => {
  const {stdout, stderr} = useHeapInLoops(CHECKED, 3);
  assert.match(stdout, /the WebAssembly module stopped/, stderr);
  assert.match(stderr, /heap_wasm\.cpp:\d+: check failed: !tenon::IsHostedWorker\(\)/);
});

// WB-41
test('the thread that runs sessions may use it in loops, too', {skip}, () => {
  const {stdout, stderr} = useHeapInLoops(CHECKED, 1);
  assert.equal(stdout, 'all loops ended\n', stderr);
});
