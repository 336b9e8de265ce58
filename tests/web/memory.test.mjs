// The module's memory when it is full: failures with a status, after which all goes on.
import assert from 'node:assert/strict';
import test from 'node:test';

import {identity, product, zeros} from './model.mjs';
import {fill, load} from './package.mjs';

const {InferenceSession, Tensor} = await load();
const {loadCore} = await load('core');

const MEBIBYTE = 2 ** 20;

// WB-32: it grows to almost 4 GiB.
test('uses the addresses that there are', async () => {
  const core = await loadCore();
  const blocks = fill(core, 1024 * MEBIBYTE);
  assert.equal(blocks.length, 3);
  assert.ok(core.memory.buffer.byteLength > 3072 * MEBIBYTE);
  assert.ok(Math.max(...blocks) > 2 ** 31, 'addresses beyond 2 GiB');
  blocks.forEach((block) => core.free(block));
});

// WB-32, WB-36
for (const least of [16 * MEBIBYTE, 64 * 1024, 1024, 16]) {
  test(`says that memory is out when no ${least} bytes are left`, async () => {
    const core = await loadCore();
    const session = await InferenceSession.create(zeros());
    const other = await InferenceSession.create(identity('float32'));
    const large = {size: new Tensor('int64', [BigInt(64 * MEBIBYTE)], [1])};
    const model = product(64, 64, 64);
    const blocks = fill(core, least);
    try {
      await assert.rejects(session.run(large), ({code, message}) => {
        assert.ok([1, 6].includes(code), `${code}: ${message}`);
        assert.match(message, /out of memory|bad_alloc|memory/);
        return true;
      });
      if (least <= 1024) await assert.rejects(InferenceSession.create(model), /memory|alloc/);
    } finally {
      blocks.forEach((block) => core.free(block));
    }
    // The same module serves old sessions and new ones.
    assert.equal(await loadCore(), core);
    const four = {size: new Tensor('int64', [4n], [1])};
    assert.deepEqual([...(await session.run(four)).y.data], [0, 0, 0, 0]);
    assert.deepEqual([...(await other.run({x: new Tensor('float32', [3], [1])})).y.data], [3]);
    await (await InferenceSession.create(model)).release();
    await session.release();
    await other.release();
  });
}

// WB-105
test('gives back what failed runs had taken', async () => {
  const core = await loadCore();
  const session = await InferenceSession.create(zeros());
  const large = {size: new Tensor('int64', [BigInt(64 * MEBIBYTE)], [1])};
  const blocks = fill(core, 16 * MEBIBYTE);
  try {
    const before = core.memory.buffer.byteLength;
    for (let i = 0; i < 200; ++i) await assert.rejects(session.run(large), /memory/);
    assert.equal(core.memory.buffer.byteLength, before);
    const block = core.call('tenon_allocate', 4 * MEBIBYTE);
    assert.notEqual(block, 0);
    core.free(block);
  } finally {
    blocks.forEach((block) => core.free(block));
  }
  await session.release();
});
