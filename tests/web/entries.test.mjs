// The package as an application installs it: under the name onnxruntime-web, with each of its entries,
// by import and by require, in Node.js and in a bundle.
import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import {existsSync, readFileSync} from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import {build} from '../../web/node_modules/esbuild/lib/main.js';
import {COMMON_PACKAGE, newApplication} from './packed.mjs';
import {DIGITS, PACKAGE} from './package.mjs';

const ENTRIES = ['', '/all', '/wasm', '/webgpu', '/jspi', '/webgl'].map(
  (entry) => `onnxruntime-web${entry}`,
);
const NAMES = [
  'InferenceSession',
  'TRACE',
  'TRACE_EVENT_BEGIN',
  'TRACE_EVENT_END',
  'TRACE_FUNC_BEGIN',
  'TRACE_FUNC_END',
  'Tensor',
  'env',
  'registerBackend',
];

// Uses the namespace `ort`, and prints what came of it.
const PROGRAM = `
  const session = await ort.InferenceSession.create(${JSON.stringify(DIGITS)});
  const image = new ort.Tensor('float32', new Float32Array(64), [1, 1, 8, 8]);
  const {probabilities} = await session.run({image});
  await session.release();
  console.log(JSON.stringify({
    names: Object.keys(ort).filter((name) => !['default', 'module.exports'].includes(name)).sort(),
    inDefault: Object.keys(ort.default).filter((name) => name in ort).length,
    isSame: ort.default.Tensor === ort.Tensor,
    sum: probabilities.data.reduce((sum, value) => sum + value, 0),
    versions: ort.env.versions,
  }));`;

const application = newApplication(
  Object.fromEntries(
    ENTRIES.flatMap((entry, i) => [
      [`import${i}.mjs`, `import * as ort from '${entry}';\n${PROGRAM}`],
      [`require${i}.cjs`, `const ort = require('${entry}');\n(async () => {${PROGRAM}})();`],
    ]),
  ),
);
test.after(application.remove);

function runInNode(file, folder = application.folder) {
  const {stdout, stderr} = spawnSync(process.execPath, [file], {cwd: folder, encoding: 'utf8'});
  // Without the long lines of bundles, which Node.js shows for an error.
  const reason = stderr.split('\n').filter((line) => line.length < 500).join('\n');
  assert.notEqual(stdout, '', reason);
  return JSON.parse(stdout);
}

ENTRIES.forEach((entry, i) => {
  for (const file of [`import${i}.mjs`, `require${i}.cjs`]) {
    // WB-1, WB-2, WB-3
    test(`${file}: ${entry} works in Node.js under the name of onnxruntime-web`, () => {
      const {names, inDefault, isSame, sum, versions} = runInNode(file);
      assert.deepEqual(names, NAMES);
      assert.equal(inDefault, NAMES.length);
      assert.ok(isSame);
      assert.ok(Math.abs(sum - 1) < 1e-5);
      assert.equal(versions.common, '1.30.0');
      assert.equal(versions.web, '1.30.0');
      assert.match(versions.tenon, /^\d+\.\d+\.\d+$/);
    });
  }
});

const installed = path.join(application.folder, 'node_modules/onnxruntime-web');
const manifest = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8'));

function targetsOf(target) {
  return typeof target === 'string' ? [target] : Object.values(target).flatMap(targetsOf);
}

// WB-2
test('has every file that its manifest names', () => {
  const {main, module, browser, unpkg, types, exports} = manifest;
  for (const target of [main, module, browser, unpkg, types, ...targetsOf(exports)]) {
    assert.ok(existsSync(path.join(installed, target)), target);
  }
});

// WB-2: the sub-paths and, for those who name files, the files of onnxruntime-web 1.30.
test('has the sub-paths and the files of onnxruntime-web', () => {
  const modules = ['', '.jsep', '.jspi', '.asyncify'].flatMap((kind) =>
    ['wasm', 'mjs'].map((type) => `./ort-wasm-simd-threaded${kind}.${type}`),
  );
  for (const entry of ['.', './all', './wasm', './webgl', './webgpu', './jspi', ...modules]) {
    assert.ok(entry in manifest.exports, entry);
  }
  const files = ['', '.all', '.wasm', '.webgl', '.webgpu', '.jspi'].flatMap((entry) =>
    ['js', 'mjs', 'min.js', 'min.mjs', 'bundle.min.mjs'].map((type) => `ort${entry}.${type}`),
  );
  const bundles = files.filter((name) => name !== 'ort.webgl.bundle.min.mjs');
  for (const name of [...bundles, 'ort.node.min.js', 'ort.node.min.mjs']) {
    if (!name.startsWith('ort.bundle.min.js')) {
      assert.ok(existsSync(path.join(installed, 'dist', name)), name);
    }
  }
});

// WB-2
test('publishes no module that an entry has already', () => {
  for (const folder of ['common', 'src', 'webnn', 'webnn-reference']) {
    assert.ok(existsSync(path.join(PACKAGE, 'dist', folder, 'package.json')));
    assert.ok(!existsSync(path.join(installed, 'dist', folder, 'index.js')), folder);
  }
});

// WB-2
test('has the reference of WebNN for import and require', () => {
  const {folder, remove} = newApplication({
    'a.mjs': "import {createML} from 'tenon-web/webnn-reference'; console.log(typeof createML);",
    'b.cjs': "console.log(typeof require('tenon-web/webnn-reference').createML);",
  }, {'tenon-web': PACKAGE});
  try {
    for (const file of ['a.mjs', 'b.cjs']) {
      const output = execFileSync(process.execPath, [file], {cwd: folder, encoding: 'utf8'});
      assert.equal(output.trim(), 'function');
    }
  } finally {
    remove();
  }
});

// WB-2
test('says for each entry which providers it lacks', () => {
  const {folder, remove} = newApplication({
    'a.mjs': `
      import {InferenceSession} from 'onnxruntime-web/webgl';
      import * as wasm from 'onnxruntime-web/wasm';
      const reasons = [];
      console.warn = () => {};
      for (const [Session, provider] of [
        [InferenceSession, 'webgl'], [InferenceSession, 'webgpu'], [wasm.InferenceSession, 'nothing'],
      ]) {
        await Session.create(${JSON.stringify(DIGITS)}, {executionProviders: [provider]}).catch(
          ({message}) => reasons.push(message),
        );
      }
      console.log(JSON.stringify(reasons));`,
  });
  try {
    const [webgl, webgpu, nothing] = runInNode('a.mjs', folder);
    assert.match(webgl, /'webgl': there is no WebGL/);
    assert.match(webgpu, /'webgpu': there is no WebGPU yet/);
    assert.match(nothing, /'nothing': there is no such backend/);
  } finally {
    remove();
  }
});

// Bundles a program as an application's bundler does for pages.
function bundle(file, options = {}) {
  return build({
    absWorkingDir: application.folder,
    entryPoints: [file],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'browser',
    format: 'esm',
    logLevel: 'silent',
    ...options,
  });
}

ENTRIES.forEach((entry, i) => {
  for (const file of [`import${i}.mjs`, `require${i}.cjs`]) {
    // WB-1
    test(`${file}: ${entry} can be bundled for pages`, async () => {
      const {outputFiles, metafile, warnings} = await bundle(file);
      assert.deepEqual(warnings, []);
      const [{imports}] = Object.values(metafile.outputs);
      assert.deepEqual(imports, []); // above all nothing of Node.js
      assert.ok(outputFiles[0].text.includes('tenon.wasm'));
    });
  }
});

// WB-1
test("can be put in another package's place by a bundler's alias", async () => {
  const {metafile} = await bundle('import0.mjs', {
    alias: {'onnxruntime-web': path.join(PACKAGE, 'dist/ort.min.mjs')},
  });
  const inputs = Object.keys(metafile.inputs);
  assert.ok(inputs.some((file) => file.endsWith('package/dist/ort.min.mjs')), inputs.join());
});

// WB-1
test('has the API alone in a package of its own', () => {
  const program = `
    const {TRACE, Tensor, env, registerBackend, InferenceSession} = ort;
    registerBackend('mine', {
      async init() {},
      async createInferenceSessionHandler(model) {
        return {
          inputNames: ['x'], outputNames: ['y'], inputMetadata: [], outputMetadata: [],
          run: async ({x}) => ({y: new Tensor('int32', x.data.map((v) => v + model.length))}),
        };
      },
    }, 1);
    InferenceSession.create(new Uint8Array(5)).then(async (session) => {
      const {y} = await session.run({x: new Tensor(Int32Array.of(1))});
      console.log(JSON.stringify([y.data[0], typeof TRACE, env.versions.common]));
    });`;
  const {folder, remove} = newApplication(
    {
      'a.mjs': `import * as ort from 'onnxruntime-common';\n${program}`,
      'b.cjs': `const ort = require('onnxruntime-common');\n${program}`,
    },
    {'onnxruntime-common': COMMON_PACKAGE},
  );
  try {
    for (const file of ['a.mjs', 'b.cjs']) {
      assert.deepEqual(runInNode(file, folder), [6, 'function', '1.30.0']);
    }
  } finally {
    remove();
  }
});
