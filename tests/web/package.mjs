// The package as `./dev web` builds it, and what tests watch of it.
import path from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const PACKAGE = process.env.TENON_WEB_PACKAGE ?? path.join(ROOT, 'build/web/package');
export const DIGITS = path.join(ROOT, 'examples/digits/digits.onnx');

// The package, or a module of it.
export function load(module = 'index') {
  return import(pathToFileURL(path.join(PACKAGE, `dist/src/${module}.js`)));
}

// What `body` prints with console[method].
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
