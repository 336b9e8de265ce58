// Runs a WebAssembly program for WASI like a native program: node run_wasi.mjs PROGRAM [ARG...]
import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';

const [program, ...rest] = process.argv.slice(2);
const wasi = new WASI({
  version: 'preview1',
  args: [program, ...rest],
  env: process.env,
  preopens: { '/': '/' },
  returnOnExit: true,
});
const module = await WebAssembly.compile(await readFile(program));
const memory = new WebAssembly.Memory({ initial: 1024, maximum: 65536, shared: true });
const instance = await WebAssembly.instantiate(module, {
  ...wasi.getImportObject(),
  env: { memory },
});
process.exitCode = wasi.start(instance);
