// Measures one case on one engine in this process, and prints JSON: see compare.mjs.
import path from 'node:path';
import {pathToFileURL} from 'node:url';

import {addFloats, product} from '../../tests/web/model.mjs';

const {engine, entry, name, threads, models, seconds} = JSON.parse(process.argv[2]);
const WARM_UP_MS = 2000;

const begin = performance.now();
const {env, InferenceSession, Tensor} = await import(pathToFileURL(entry));
env.wasm.numThreads = threads;
if (engine !== 'onnxruntime-web') env.wasm.simd = engine === 'tenon-relaxed' ? 'relaxed' : 'fixed';

// What the case runs: its own small models, or the name of a file.
function modelOf() {
  const [, size] = /^matmul(\d+)$/.exec(name) ?? [];
  if (size !== undefined) return product(+size, +size, +size);
  if (name === 'add4' || name === 'start') return addFloats(4);
  return path.join(models, `${name}.onnx`);
}

const ARRAYS = {float32: Float32Array, int64: BigInt64Array, int32: Int32Array, uint8: Uint8Array};
const LENGTH = 64; // of a dimension without a number, except for the first

function feedOf({type, shape}) {
  const dims = shape.map((dim, i) => (typeof dim === 'number' ? dim : i === 0 ? 1 : LENGTH));
  const size = dims.reduce((product, dim) => product * dim, 1);
  const data = ARRAYS[type].from({length: size}, (_, i) =>
    type === 'float32' ? Math.sin(i) : type === 'int64' ? 1n : 1,
  );
  return new Tensor(type, data, dims);
}

const session = await InferenceSession.create(modelOf());
const feeds = Object.fromEntries(session.inputMetadata.map((input) => [input.name, feedOf(input)]));
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
if (name !== 'start') {
  await runFor(WARM_UP_MS);
  times.length = 0;
  await runFor(seconds * 1000);
}
times.sort((a, b) => a - b);
console.log(
  JSON.stringify({
    milliseconds: name === 'start' ? start : times[times.length >> 1],
    runs: times.length,
    residentBytes: process.memoryUsage().rss,
  }),
);
process.exit();
