// Compares tenon-web with onnxruntime-web in Node.js, or with --browser in Chromium: each measurement
// is a process of its own, and the engines take turns.
//
//   node bench/web/compare.mjs --ort FOLDER [--package FOLDER] [--models FOLDER] [--cases a,b]
//     [--threads 1,2] [--rounds 5] [--seconds 1] [--relaxed] [--browser] [--json FILE]
//
// --ort: where onnxruntime-web was installed from npm, the folder of node_modules. --models: what
// bench/build_models.py wrote. Cases: matmulN, add4 (a run without work), start (import, create and
// first run of a tiny model), and the names of models. --relaxed adds the module with relaxed SIMD,
// for which Node.js 20 needs a flag, that all engines then get.
import {execFile} from 'node:child_process';
import {readFileSync, writeFileSync} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {parseArgs, promisify} from 'node:util';

import {measureInPage} from './page.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const ROOT = path.resolve(HERE, '../..');
const {values: options} = parseArgs({
  options: {
    ort: {type: 'string'},
    package: {type: 'string', default: path.join(ROOT, 'build/web/package')},
    models: {type: 'string', default: path.join(ROOT, 'build/models')},
    cases: {
      type: 'string',
      default: 'matmul512,matmul1024,add4,start,mobilenet_v2,resnet18,squeezenet,minilm_l6',
    },
    threads: {type: 'string', default: '1,2'},
    rounds: {type: 'string', default: '5'},
    seconds: {type: 'string', default: '1'},
    relaxed: {type: 'boolean', default: false},
    browser: {type: 'boolean', default: false},
    json: {type: 'string'},
  },
});
if (options.ort === undefined) throw new Error('--ort: the folder with onnxruntime-web is missing');

const manifest = (folder) => JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));

// The file that `import` of a package gets in Node.js.
function entryOf(folder) {
  const {exports, main} = manifest(folder);
  let entry = exports['.'];
  while (typeof entry === 'object') entry = entry.node ?? entry.import ?? entry.default;
  return path.join(folder, entry ?? main);
}

const ort = path.join(options.ort, 'node_modules/onnxruntime-web');
const folders = {'onnxruntime-web': ort, tenon: path.resolve(options.package)};
if (options.relaxed) folders['tenon-relaxed'] = folders.tenon;
const needsFlag =
  options.relaxed && !options.browser && process.versions.node.startsWith('20.');
const flags = needsFlag ? ['--experimental-wasm-relaxed-simd'] : [];
const names = Object.keys(folders);
let browser;

// The entries of pages have WebAssembly alone, as Node.js does.
const PAGE_ENTRIES = Object.fromEntries(names.map((engine) => [engine, 'dist/ort.wasm.min.mjs']));

async function measure(engine, name, threads) {
  const models = path.resolve(options.models);
  const task = {engine, name, threads, models, seconds: Number(options.seconds)};
  if (options.browser) {
    const result = await measureInPage(task, folders, PAGE_ENTRIES);
    browser = result.browser;
    return result;
  }
  task.entry = entryOf(folders[engine]);
  const args = [...flags, path.join(HERE, 'measure.mjs'), JSON.stringify(task)];
  const {stdout} = await promisify(execFile)(process.execPath, args, {maxBuffer: 2 ** 26});
  return JSON.parse(stdout.trim().split('\n').at(-1));
}

const sorted = (numbers) => [...numbers].sort((a, b) => a - b);
const median = (numbers) => sorted(numbers)[numbers.length >> 1];

const results = [];
for (const name of options.cases.split(',')) {
  for (const threads of options.threads.split(',').map(Number)) {
    const times = Object.fromEntries(names.map((engine) => [engine, []]));
    const resident = {};
    for (let round = 0; round < Number(options.rounds); ++round) {
      for (const engine of names) {
        const {milliseconds, residentBytes} = await measure(engine, name, threads);
        times[engine].push(milliseconds);
        resident[engine] = residentBytes;
      }
    }
    const result = {name, threads, engines: {}};
    for (const [engine, each] of Object.entries(times)) {
      result.engines[engine] = {
        milliseconds: median(each),
        spread: (sorted(each).at(-1) - sorted(each)[0]) / median(each),
        residentBytes: resident[engine],
        ratio: median(times['onnxruntime-web']) / median(each),
      };
    }
    results.push(result);
    const texts = Object.entries(result.engines).map(
      ([engine, {milliseconds, spread, ratio}]) =>
        `${engine} ${milliseconds.toFixed(3)} ms (+-${Math.round(spread * 50)} %, ${ratio.toFixed(2)}x)`,
    );
    console.log(`${name}, ${threads} threads: ${texts.join(', ')}`);
  }
}
const report = {
  versions: {
    ...(browser === undefined
      ? {node: process.versions.node, v8: process.versions.v8}
      : {browser}),
    'onnxruntime-web': manifest(ort).version,
    tenon: manifest(options.package).version,
  },
  machine: {cpu: os.cpus()[0].model, cores: os.cpus().length, load: os.loadavg()},
  flags,
  rounds: Number(options.rounds),
  results,
};
if (options.json !== undefined) writeFileSync(options.json, JSON.stringify(report, null, 2));
