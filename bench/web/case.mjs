// Measures one case on one engine, in Node.js or in a page: see compare.mjs.
import {addFloats, product} from '../../tests/web/model.mjs';

const WARM_UP_MS = 2000;

// The case's own small model; undefined for one that is the name of a file.
function ownModel(name) {
  const [, size] = /^matmul(\d+)$/.exec(name) ?? [];
  if (size !== undefined) return product(+size, +size, +size);
  return name === 'add4' || name === 'start' ? addFloats(4) : undefined;
}

const ARRAYS = {float32: Float32Array, int64: BigInt64Array, int32: Int32Array, uint8: Uint8Array};
const LENGTH = 64; // of a dimension without a number, except for the first

function feedOf(Tensor, {type, shape}) {
  const dims = shape.map((dim, i) => (typeof dim === 'number' ? dim : i === 0 ? 1 : LENGTH));
  const size = dims.reduce((product, dim) => product * dim, 1);
  const data = ARRAYS[type].from({length: size}, (_, i) =>
    type === 'float32' ? Math.sin(i) : type === 'int64' ? 1n : 1,
  );
  return new Tensor(type, data, dims);
}

// {engine, name, threads, seconds}: the median of the milliseconds of a run, or for 'start' those of
// import, creation and first run. `entry` is what is imported, `models` is put before NAME.onnx.
export async function measure({engine, name, threads, seconds}, entry, models) {
  const begin = performance.now();
  const {env, InferenceSession, Tensor} = await import(entry);
  env.wasm.numThreads = threads;
  if (engine !== 'onnxruntime-web') env.wasm.simd = engine === 'tenon-relaxed' ? 'relaxed' : 'fixed';
  const session = await InferenceSession.create(ownModel(name) ?? `${models}${name}.onnx`);
  const feeds = Object.fromEntries(
    session.inputMetadata.map((input) => [input.name, feedOf(Tensor, input)]),
  );
  await session.run(feeds);
  const start = performance.now() - begin;

  const times = [];
  async function runFor(milliseconds) {
    for (const end = performance.now() + milliseconds; performance.now() < end; ) {
      const before = performance.now();
      await session.run(feeds);
      times.push(performance.now() - before);
      // So that events are handled, as in a page.
      if (times.length % 64 === 0) await new Promise((resolve) => setTimeout(resolve));
    }
  }
  if (name === 'start') return {milliseconds: start, runs: 1};
  await runFor(WARM_UP_MS);
  times.length = 0;
  await runFor(seconds * 1000);
  times.sort((a, b) => a - b);
  return {milliseconds: times[times.length >> 1], runs: times.length};
}
