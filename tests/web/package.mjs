// The package that `./dev web` builds, and what tests do with it.
import path from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const PACKAGE = process.env.TENON_WEB_PACKAGE ?? path.join(ROOT, 'build/web/package');
// The module that checks what workers do; not a part of the package.
export const CHECKED = path.join(ROOT, 'build/wasm/web/tenon.checked.wasm');
export const DIGITS = path.join(ROOT, 'examples/digits/digits.onnx');

// The package, or a module of it.
export function load(module = 'index') {
  return import(pathToFileURL(path.join(PACKAGE, `dist/src/${module}.js`)));
}

// The lines that `body` prints with console[method].
export async function printed(method, body) {
  const lines = [];
  const original = console[method];
  console[method] = (...args) => lines.push(args.join(' '));
  try {
    await body();
  } finally {
    console[method] = original;
  }
  return lines;
}

// Takes all of the module's memory but what is in pieces smaller than `least` bytes. The blocks.
export function fill(core, least) {
  const blocks = [];
  for (let bytes = 2 ** 30; bytes >= least; ) {
    const block = core.call('tenon_allocate', bytes);
    if (block === 0) bytes /= 2;
    else blocks.push(block);
  }
  return blocks;
}
