// Sessions in the worker of env.wasm.proxy, in Node.js.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';
import test from 'node:test';
import {pathToFileURL} from 'node:url';

import {externalSum, identity, sumAndProduct} from './model.mjs';
import {DIGITS, load, PACKAGE, printed} from './package.mjs';

const {env, InferenceSession, Tensor} = await load();
env.wasm.proxy = true;

const floats = (...values) => new Tensor('float32', values, [values.length]);
const pair = () => ({a: floats(1, 2), b: floats(3, 4)});

// WB-44
test('runs sessions with the same API', async () => {
  const session = await InferenceSession.create(sumAndProduct());
  assert.deepEqual(session.inputNames, ['a', 'b']);
  assert.deepEqual(session.outputMetadata[0], {
    name: 'sum', isTensor: true, type: 'float32', shape: [2],
  });
  const options = {extra: {'tenon.run_report': '1'}};
  const {sum, product} = await session.run(pair(), options);
  assert.deepEqual([[...sum.data], [...product.data]], [[4, 6], [3, 8]]);
  assert.ok(sum instanceof Tensor);
  assert.equal(options.report.nodes, 2);
  assert.deepEqual(Object.keys(await session.run(pair(), ['product'])), ['product']);
  await session.release();
  await assert.rejects(session.run(pair()), /the session is released/);
  await assert.rejects(session.release(), /the session is released/);
});

// WB-44
test('answers each request, whatever the order', async () => {
  const sessions = await Promise.all(
    ['float32', 'string', 'int64', 'float16'].map((type) => InferenceSession.create(identity(type))),
  );
  const feeds = [
    floats(1),
    new Tensor('string', ['a', 'ß']),
    new Tensor('int64', [7n]),
    new Tensor('float16', Uint16Array.of(0x3c00)),
  ];
  const results = await Promise.all(
    [3, 0, 1, 2, 0, 3].map(async (i) => [i, (await sessions[i].run({x: feeds[i]})).y]),
  );
  for (const [i, y] of results) assert.deepEqual([y.type, y.data], [feeds[i].type, feeds[i].data]);
});

// WB-15, WB-44
test('neither changes nor takes feeds and models', async () => {
  const model = new Uint8Array(readFileSync(DIGITS));
  const session = await InferenceSession.create(model);
  assert.deepEqual(model, new Uint8Array(readFileSync(DIGITS)));
  const memory = new Float32Array(70).fill(0.5);
  const image = new Tensor('float32', memory.subarray(3, 67), [1, 1, 8, 8]);
  const pending = session.run({image});
  memory.fill(9);
  const {probabilities} = await pending;
  assert.equal(memory.length, 70);
  const expected = await session.run({
    image: new Tensor('float32', new Float32Array(64).fill(0.5), [1, 1, 8, 8]),
  });
  assert.deepEqual(probabilities.data, expected.probabilities.data);
});

// WB-11, WB-44
test('has the errors of the worker', async () => {
  const session = await InferenceSession.create(sumAndProduct());
  const wrong = session.run({a: floats(1, 2, 3), b: floats(1, 2)});
  await assert.rejects(wrong, {code: 2, message: /^InferenceSession\.run: .*'a'/s});
  await assert.rejects(InferenceSession.create('/no/such/model.onnx'), /no such file/);
  const options = {graphOptimizationLevel: 'most'};
  await assert.rejects(InferenceSession.create(sumAndProduct(), options), TypeError);
});

// WB-44
test('says what cannot be passed to a worker', async () => {
  const session = await InferenceSession.create(identity('float32'));
  const onDevice = Tensor.fromMLTensor({destroy() {}}, {dims: [1]});
  await assert.rejects(session.run({x: onDevice}), /env\.wasm\.proxy.*at 'cpu', not at 'ml-tensor'/);
  const onGpu = Tensor.fromGpuBuffer({size: 4}, {dims: [1]});
  await assert.rejects(session.run({x: onGpu}), /env\.wasm\.proxy.*not at 'gpu-buffer'/);
  await assert.rejects(session.run({x: floats(1)}, {y: floats(0)}), /env\.wasm\.proxy.*names alone/);
  const somewhere = {preferredOutputLocation: {y: 'gpu-buffer'}};
  await assert.rejects(
    InferenceSession.create(identity('float32'), somewhere),
    /preferredOutputLocation: with env\.wasm\.proxy.*'gpu-buffer'/,
  );
  const context = {executionProviders: [{name: 'webnn', context: {}}]};
  await printed('warn', () =>
    assert.rejects(
      InferenceSession.create(identity('float32'), context),
      /with env\.wasm\.proxy, 'context' cannot be used/,
    ),
  );
  const odd = {extra: {a: () => {}}};
  await assert.rejects(InferenceSession.create(identity('float32'), odd), /cannot be sent/);
});

// WB-5, WB-44
test('tries the providers that are asked for in the worker', async () => {
  const warnings = await printed('warn', async () => {
    const session = await InferenceSession.create(identity('float32'), {
      executionProviders: ['webnn', 'wasm'],
    });
    assert.deepEqual([...(await session.run({x: floats(5)})).y.data], [5]);
  });
  assert.deepEqual(warnings, [
    "execution provider 'webnn' is left out: WebNN is not there: MLGraphBuilder is missing",
  ]);
});

// WB-16, WB-44
test('reads and writes files', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'tenon-web-'));
  t.after(() => rmSync(folder, {recursive: true}));
  const weights = path.join(folder, 'weights.bin');
  writeFileSync(weights, Float32Array.of(10, 20));
  const optimized = path.join(folder, 'optimized.onnx');
  const session = await InferenceSession.create(externalSum(), {
    externalData: [{path: 'weights.bin', data: weights}],
    optimizedModelFilePath: optimized,
  });
  assert.deepEqual([...(await session.run({x: floats(1, 2)})).y.data], [11, 22]);
  const again = await InferenceSession.create(optimized);
  assert.deepEqual([...(await again.run({x: floats(1, 2)})).y.data], [11, 22]);
});

// WB-44, WB-45, WB-106: in the modules, and in the package's bundles for import and require.
const ENTRY = (name) => pathToFileURL(path.join(PACKAGE, 'dist', name)).href;
for (const [name, get] of Object.entries({
  'src/index.js': `await import('${ENTRY('src/index.js')}')`,
  'ort.node.min.mjs': `await import('${ENTRY('ort.node.min.mjs')}')`,
  'ort.node.min.js': `require(${JSON.stringify(path.join(PACKAGE, 'dist/ort.node.min.js'))})`,
})) {
  for (const proxy of [false, true]) {
    test(`${name}: the process ends by itself, proxy ${proxy}`, () => {
      const program = `(async () => {
        const ort = ${get};
        ort.env.wasm.proxy = ${proxy};
        const session = await ort.InferenceSession.create(${JSON.stringify(DIGITS)});
        const image = new ort.Tensor('float32', new Float32Array(64), [1, 1, 8, 8]);
        console.log((await session.run({image})).probabilities.dims.join());
      })();`;
      const {status, stdout, stderr} = spawnSync(process.execPath, ['-e', program], {
        encoding: 'utf8',
        timeout: 30_000,
      });
      assert.equal(stdout, '1,10\n', stderr.slice(0, 1000));
      assert.equal(status, 0);
    });
  }
}

// WB-44, WB-106
test('tells of the end of the worker, and starts another one', () => {
  const program = `
    import {Worker} from 'node:worker_threads';
    const workers = [];
    const {unref} = Worker.prototype;
    Worker.prototype.unref = function () {
      if (!workers.includes(this)) workers.push(this);
      unref.call(this);
    };
    const {env, InferenceSession, Tensor} = await import('${ENTRY('ort.node.min.mjs')}');
    env.wasm.proxy = true;
    const create = () => InferenceSession.create(${JSON.stringify(DIGITS)});
    const image = new Tensor('float32', new Float32Array(64), [1, 1, 8, 8]);
    const session = await create();
    const pending = session.run({image}).catch(({message}) => message);
    await workers[0].terminate();
    console.log(await pending);
    console.log(await session.run({image}).catch(({message}) => message));
    const other = await create();
    console.log(Object.keys(await other.run({image})).join());`;
  const {stdout, stderr} = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    timeout: 30_000,
  });
  const [first, second, third] = stdout.split('\n');
  assert.match(first, /^(the worker of env\.wasm\.proxy ended|\[object Object\])/, stderr.slice(0, 1000));
  assert.match(second, /^the worker of env\.wasm\.proxy ended/);
  assert.match(third, /probabilities/);
});
