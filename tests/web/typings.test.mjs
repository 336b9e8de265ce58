// The declarations of the packages: a file that uses every type of onnxruntime-common compiles with
// them, in every way of finding a module.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import test from 'node:test';
import {fileURLToPath} from 'node:url';

import {COMMON_PACKAGE, newApplication} from './packed.mjs';

const SOURCE = readFileSync(new URL('typings.ts', import.meta.url), 'utf8');
const TSC = fileURLToPath(
  new URL('../../web/node_modules/typescript/bin/tsc', import.meta.url),
);
const HOWS = {
  'a.mts in Node.js': ['a.mts', '--module', 'node16'],
  'a.cts in Node.js': ['a.cts', '--module', 'node16'],
  'a.ts in a bundler': ['a.ts', '--module', 'esnext', '--moduleResolution', 'bundler'],
};
// Programs without DOM's declarations exist, but onnxruntime-common's do not compile there either.
const OPTIONS = ['--noEmit', '--strict', '--target', 'es2022', '--lib', 'es2022,dom'];

function compile(application, args) {
  const {status, stdout} = spawnSync(process.execPath, [TSC, ...OPTIONS, ...args], {
    cwd: application.folder,
    encoding: 'utf8',
  });
  return {status, text: stdout};
}

// The part of the source that is about the API alone.
const COMMON_SOURCE = SOURCE.replace("import ortDefault, * as ort from 'onnxruntime-web';", '')
  .replaceAll("'onnxruntime-web'", "'onnxruntime-common'")
  .replace(/^import \* as .*\n/gm, '')
  .replace(/^same<typeof all[^]*?^}\n/m, '');

for (const [how, args] of Object.entries(HOWS)) {
  // WB-6
  test(`${how}: every type of onnxruntime-common is there`, (t) => {
    const application = newApplication({[args[0]]: SOURCE});
    t.after(application.remove);
    const {status, text} = compile(application, args);
    assert.equal(status, 0, text);
  });

  // WB-1, WB-6
  test(`${how}: they are in the package of the API, too`, (t) => {
    const application = newApplication({[args[0]]: COMMON_SOURCE}, {
      'onnxruntime-common': COMMON_PACKAGE,
    });
    t.after(application.remove);
    const {status, text} = compile(application, args);
    assert.equal(status, 0, text);
  });
}

// WB-6
test('the compiler sees wrong uses', (t) => {
  const application = newApplication({
    'a.mts': "import {Tensor} from 'onnxruntime-web';\nconst a: string = new Tensor([true]).data;\n",
  });
  t.after(application.remove);
  const {status, text} = compile(application, HOWS['a.mts in Node.js']);
  assert.notEqual(status, 0);
  assert.match(text, /TS2322: Type 'Uint8Array/);
});
