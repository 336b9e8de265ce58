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

// WB-18: subclasses, and arrays of another realm, as test runners have them.
test('takes arrays of other realms and subclasses', async () => {
  const {runInNewContext} = await import('node:vm');
  const foreign = runInNewContext('Float32Array.of(1, 2)');
  assert.equal(new Tensor('float32', foreign).data, foreign);
  assert.equal(new Tensor(foreign).type, 'float32');
  assert.equal(new Tensor(Buffer.of(1, 2)).type, 'uint8');
});

// WB-21
test('is where its data is', async () => {
  const handle = {destroy() {}, size: 4};
  for (const [tensor, location, member] of [
    [Tensor.fromTexture(handle, {width: 2, height: 3}), 'texture', 'texture'],
    [Tensor.fromGpuBuffer(handle, {dims: [6]}), 'gpu-buffer', 'gpuBuffer'],
    [Tensor.fromMLTensor(handle, {dims: [6]}), 'ml-tensor', 'mlTensor'],
    [new Tensor({location: 'gpu-buffer', type: 'int32', gpuBuffer: handle, dims: [6]}), 'gpu-buffer',
      'gpuBuffer'],
  ]) {
    assert.equal(tensor.location, location);
    assert.equal(tensor[member], handle);
    for (const other of ['data', 'texture', 'gpuBuffer', 'mlTensor']) {
      if (other !== member) assert.throws(() => tensor[other], new RegExp(`at location '${location}'`));
    }
    await assert.rejects(tensor.getData(), /made without download/);
    assert.equal(tensor.reshape([tensor.size])[member], handle);
    tensor.dispose();
    assert.equal(tensor.location, 'none');
    assert.throws(() => tensor[member], /disposed/);
  }
  assert.deepEqual(Tensor.fromTexture(handle, {width: 2, height: 3}).dims, [1, 3, 2, 4]);
  const data = Int8Array.of(1, 2);
  const pinned = Tensor.fromPinnedBuffer('int8', data);
  assert.deepEqual([pinned.location, pinned.data, pinned.dims], ['cpu-pinned', data, [2]]);
  assert.equal(pinned.reshape([2, 1]).location, 'cpu-pinned');
  assert.throws(() => Tensor.fromGpuBuffer(handle, {dims: [6], dataType: 'string'}), TypeError);
  assert.throws(() => Tensor.fromGpuBuffer(7, {dims: [6]}), TypeError);
  assert.throws(() => new Tensor({location: 'cloud', type: 'int8', dims: [1]}), TypeError);
});

// WB-22
test('is downloaded once, and gives its memory back', async () => {
  let downloads = 0;
  let disposals = 0;
  const make = () =>
    Tensor.fromGpuBuffer({}, {
      dims: [2],
      download: async () => Float32Array.of(1, ++downloads),
      dispose: () => ++disposals,
    });
  const tensor = make();
  assert.throws(() => tensor.reshape([2, 1]), /owns memory of a device/);
  const pending = tensor.getData();
  assert.throws(() => tensor.dispose(), /being downloaded/);
  await assert.rejects(tensor.getData(), /being downloaded/);
  assert.deepEqual(await pending, Float32Array.of(1, 1));
  assert.deepEqual([tensor.location, disposals], ['cpu', 0]);
  assert.equal(await tensor.getData(true), await pending);
  assert.deepEqual([downloads, disposals], [1, 1]);
  tensor.dispose();
  assert.equal(disposals, 1);
});
