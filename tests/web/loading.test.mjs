// How bytes get into the module's memory: models and their files, and feeds that are there already.
import assert from 'node:assert/strict';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {tmpdir} from 'node:os';
import path from 'node:path';
import test from 'node:test';
import {gzipSync} from 'node:zlib';

import {addFloats, constantProduct, externalProduct, identity} from './model.mjs';
import {fill, load} from './package.mjs';

const {env, InferenceSession, Tensor} = await load();
const {loadCore} = await load('core');

const MEBIBYTE = 2 ** 20;

// A vector times 64 MiB of weights.
const K = 4096;
const N = 4096;
const weights = Float32Array.from({length: K * N}, (_, i) => (i % 7) - 3);
const a = new Tensor('float32', Float32Array.from({length: K}, (_, i) => (i % 5) - 2), [1, K]);
const expected = new Float32Array(N);
for (let k = 0; k < K; ++k) {
  for (let n = 0; n < N; ++n) expected[n] += a.data[k] * weights[k * N + n]; // exact: small integers
}

const model = constantProduct(N, K, weights);
const file = new Uint8Array(weights.buffer);

// Answers with `files`, in pieces; a body whose path begins with /gzip or /unknown is compressed, or
// has no length in front.
async function withServer(files, body) {
  const server = createServer((request, response) => {
    const [, kind, name] = /^\/(gzip|unknown|plain)\/(.*)$/.exec(request.url);
    const content = kind === 'gzip' ? gzipSync(files[name], {level: 1}) : files[name];
    if (kind === 'gzip') response.setHeader('content-encoding', 'gzip');
    if (kind !== 'unknown') response.setHeader('content-length', content.length);
    for (let i = 0; i < content.length; i += MEBIBYTE) {
      response.write(content.subarray(i, i + MEBIBYTE));
    }
    response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await body(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections?.();
    server.close();
  }
}

// The greatest number of bytes that are taken from the module's heap while `body` runs.
async function mostTaken(core, body) {
  const sizes = new Map();
  let taken = 0;
  let most = 0;
  const {allocate, free} = core;
  core.allocate = (operation, size) => {
    const address = allocate.call(core, operation, size);
    sizes.set(address, size);
    taken += size;
    most = Math.max(most, taken);
    return address;
  };
  core.free = (address) => {
    taken -= sizes.get(address) ?? 0;
    sizes.delete(address);
    free.call(core, address);
  };
  try {
    await body();
  } finally {
    delete core.allocate;
    delete core.free;
  }
  return most;
}

async function check(session) {
  // The first run packs weights piece by piece, later ones use what the second packed.
  for (let i = 0; i < 3; ++i) assert.deepEqual((await session.run({a})).y.data, expected);
}

const folder = mkdtempSync(path.join(tmpdir(), 'tenon-loading-'));
test.after(() => rmSync(folder, {recursive: true}));
writeFileSync(path.join(folder, 'model.onnx'), model);
writeFileSync(path.join(folder, 'weights.bin'), file);
const files = {'model.onnx': model, 'weights.bin': file};

// What `create` gets, by the address of a server.
const SOURCES = {
  'bytes': () => [model],
  'the path of a file': () => [path.join(folder, 'model.onnx')],
  'an address': (address) => [`${address}/plain/model.onnx`],
  'external data in bytes': () => [
    externalProduct(N, K),
    {externalData: [{path: 'weights.bin', data: file}]},
  ],
  'external data in a file': () => [
    externalProduct(N, K),
    {externalData: [{path: 'weights.bin', data: path.join(folder, 'weights.bin')}]},
  ],
  'external data at an address': (address) => [
    externalProduct(N, K),
    {externalData: [{path: 'weights.bin', data: `${address}/plain/weights.bin`}]},
  ],
};

for (const [name, source] of Object.entries(SOURCES)) {
  // WB-33
  test(`copies a model once: ${name}`, async () => {
    const core = await loadCore();
    await withServer(files, async (address) => {
      const before = core.memory.buffer.byteLength;
      let session;
      const most = await mostTaken(core, async () => {
        session = await InferenceSession.create(...source(address));
      });
      // The weights, once, and small texts; the core has made no second copy of them either.
      assert.ok(most < file.length + MEBIBYTE, `${most} bytes`);
      const grown = core.memory.buffer.byteLength - before;
      assert.ok(grown < file.length + 32 * MEBIBYTE, `the memory grew by ${grown} bytes`);
      await check(session);
      await session.release();
      // What the session had is there for the next one.
      const after = core.memory.buffer.byteLength;
      await check(session = await InferenceSession.create(...source(address)));
      await session.release();
      assert.ok(core.memory.buffer.byteLength < after + 4 * MEBIBYTE);
    });
  });
}

// WB-33
test('reads an address whatever the server says of the length', async () => {
  await withServer(files, async (address) => {
    for (const kind of ['gzip', 'unknown']) {
      const session = await InferenceSession.create(`${address}/${kind}/model.onnx`);
      await check(session);
      await session.release();
    }
    const core = await loadCore();
    const taken = await mostTaken(core, () =>
      assert.rejects(
        InferenceSession.create(externalProduct(N, K), {
          externalData: [
            {path: 'weights.bin', data: `${address}/plain/weights.bin`},
            {path: 'other.bin', data: path.join(folder, 'no such file')},
          ],
        }),
        /ENOENT/,
      ),
    );
    assert.ok(taken >= file.length);
    // It was given back.
    const before = core.memory.buffer.byteLength;
    await (await InferenceSession.create(model)).release();
    assert.ok(core.memory.buffer.byteLength < before + 4 * MEBIBYTE);
  });
});

// WB-24, WB-27
test('feeds and writes memory of env.tenon.allocate where it is', async () => {
  const SIZE = 2 * MEBIBYTE;
  const session = await InferenceSession.create(addFloats(SIZE));
  const names = ['a', 'b', 'y'];
  const memory = await Promise.all(names.map(() => env.tenon.allocate(4 * SIZE)));
  const [x, z, y] = memory.map(
    ({buffer, byteOffset}) => new Float32Array(buffer, byteOffset, SIZE),
  );
  x.forEach((_, i) => (x[i] = i));
  z.fill(0.5);
  const tensorOf = (data) => Tensor.fromPinnedBuffer('float32', data, [SIZE]);
  const [feedA, feedB, fetch] = [x, z, y].map(tensorOf);
  const core = await loadCore();
  core.free(core.allocate('test', 128 * MEBIBYTE)); // the memory's buffer is another one now
  await session.run({a: feedA, b: feedB}, {y: fetch}); // a plan is made
  y.fill(0);
  // There is no memory for a copy of any of them.
  const blocks = fill(core, MEBIBYTE);
  try {
    const result = await session.run({a: feedA, b: feedB}, {y: fetch});
    assert.equal(result.y, fetch);
    assert.ok(y.every((value, i) => value === Math.fround(i + 0.5)));
    const copied = new Tensor('float32', x.slice(), [SIZE]);
    await assert.rejects(session.run({a: copied, b: feedB}, {y: fetch}), /out of memory/);
  } finally {
    blocks.forEach((block) => core.free(block));
  }
  await session.release();
  memory.forEach((each) => env.tenon.free(each));
});

// WB-24: other arrays, and strings, are copied as ever.
test('says what is wrong with memory that it did not lend', async () => {
  const memory = await env.tenon.allocate(16);
  assert.equal(memory.length, 16);
  env.tenon.free(memory);
  assert.throws(() => env.tenon.free(memory), /env\.tenon\.free: expected what/);
  assert.throws(() => env.tenon.free(new Uint8Array(16)), TypeError);
  for (const size of [-1, 0.5, '4']) {
    await assert.rejects(env.tenon.allocate(size), /env\.tenon\.allocate: expected a number/);
  }
  await assert.rejects(env.tenon.allocate(2 ** 40), /out of memory|expected/);
  const session = await InferenceSession.create(identity('float32'));
  const shared = new Float32Array(new SharedArrayBuffer(8));
  shared.set([1, 2]);
  const {y} = await session.run({x: Tensor.fromPinnedBuffer('float32', shared, [2])});
  assert.deepEqual([...y.data], [1, 2]);
  await session.release();
});
