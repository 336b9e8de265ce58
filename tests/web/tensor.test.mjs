// Tensors: their constructors and what they check.
import assert from 'node:assert/strict';
import test from 'node:test';

import {load} from './package.mjs';

const {Tensor} = await load();

// WB-18
test('infers the type of arrays that have one', () => {
  for (const [data, type] of [
    [Float32Array.of(1), 'float32'],
    [Float64Array.of(1), 'float64'],
    [Uint8ClampedArray.of(1), 'uint8'],
    [Uint16Array.of(1), 'uint16'],
    [BigInt64Array.of(1n), 'int64'],
    [['a'], 'string'],
    [[true, false], 'bool'],
  ]) {
    const tensor = new Tensor(data);
    assert.equal(tensor.type, type);
    assert.deepEqual(tensor.dims, [data.length]);
  }
  for (const data of [[1, 2], [], {}, 3, undefined, new DataView(new ArrayBuffer(4))]) {
    assert.throws(() => new Tensor(data), TypeError);
  }
});

// WB-18
test('converts arrays of numbers', () => {
  assert.deepEqual(new Tensor('int64', [1, 2n]).data, BigInt64Array.of(1n, 2n));
  assert.deepEqual(new Tensor('bool', [true, false]).data, Uint8Array.of(1, 0));
  assert.deepEqual(new Tensor('float64', [0.5]).data, Float64Array.of(0.5));
  const data = Float32Array.of(1, 2);
  assert.equal(new Tensor('float32', data).data, data);
  for (const [type, wrong] of [
    ['float32', Float64Array.of(1)],
    ['int4', [1]],
    ['string', Uint8Array.of(1)],
    ['complex64', [1]],
  ]) {
    assert.throws(() => new Tensor(type, wrong), TypeError, type);
  }
});

// WB-20
test('has as many elements as its dims say', () => {
  assert.equal(new Tensor('float32', [1, 2, 3, 4, 5, 6], [2, 3]).size, 6);
  assert.equal(new Tensor('float32', [1], []).size, 1);
  assert.equal(new Tensor('float32', [], [0, 3]).size, 0);
  assert.equal(new Tensor('uint4', Uint8Array.of(0x21, 0x03), [3]).size, 3);
  assert.throws(() => new Tensor('float32', [1, 2], [3]), RangeError);
  assert.throws(() => new Tensor('float32', [1], [-1]), RangeError);
  for (const dims of [[0.5], ['1'], [NaN], [2 ** 53], [1n], 1]) {
    assert.throws(() => new Tensor('float32', [1], dims), TypeError, String(dims));
  }
});

test('is reshaped over the same data', () => {
  const tensor = new Tensor('float32', [1, 2, 3, 4]);
  const square = tensor.reshape([2, 2]);
  assert.equal(square.data, tensor.data);
  assert.deepEqual(square.dims, [2, 2]);
  assert.throws(() => tensor.reshape([3]), RangeError);
});

test('has no data once it is disposed', async () => {
  const tensor = new Tensor('float32', [1]);
  assert.equal(await tensor.getData(), tensor.data);
  assert.equal(tensor.location, 'cpu');
  tensor.dispose();
  tensor.dispose();
  assert.equal(tensor.location, 'none');
  assert.throws(() => tensor.data, /disposed/);
  await assert.rejects(tensor.getData(), /disposed/);
});
