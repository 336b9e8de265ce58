// bench/web/compare.mjs, with this package in the place of onnxruntime-web, too.
import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';
import test from 'node:test';
import {fileURLToPath} from 'node:url';
import {promisify} from 'node:util';

import {skip} from './browser.mjs';
import {PACKAGE} from './package.mjs';

const COMPARE = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../bench/web/compare.mjs');
const DEADLINE_MS = 240_000;

for (const [place, flags, isSkipped] of [['Node.js', [], false], ['Chromium', ['--browser'], skip]]) {
  // WB-108
  test(`the benchmark writes what it measured in ${place}`, {skip: isSkipped, timeout: DEADLINE_MS}, async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'tenon-bench-'));
    t.after(() => rmSync(folder, {recursive: true}));
    mkdirSync(path.join(folder, 'node_modules'));
    symlinkSync(path.resolve(PACKAGE), path.join(folder, 'node_modules/onnxruntime-web'));
    const file = path.join(folder, 'report.json');
    await promisify(execFile)(process.execPath, [
      COMPARE, '--ort', folder, '--package', PACKAGE, '--cases', 'add4,start', '--threads', '1',
      '--rounds', '2', '--seconds', '0.05', '--json', file, ...flags,
    ]);
    const {versions, machine, results, rounds} = JSON.parse(readFileSync(file));
    assert.match(place === 'Chromium' ? versions.browser : versions.node, /\d+\.\d+/);
    for (const engine of ['onnxruntime-web', 'tenon']) assert.match(versions[engine], /^\d+\.\d+/);
    assert.ok(machine.cores >= 1 && machine.cpu.length > 0);
    assert.equal(rounds, 2);
    assert.deepEqual(results.map(({name, threads}) => [name, threads]), [['add4', 1], ['start', 1]]);
    for (const {engines} of results) {
      assert.deepEqual(Object.keys(engines), ['onnxruntime-web', 'tenon']);
      for (const {milliseconds, spread, ratio} of Object.values(engines)) {
        assert.ok(milliseconds > 0 && spread >= 0 && ratio > 0);
      }
    }
    // A start compiles the module; add4 adds four floats.
    const [add4, start] = results.map(({engines}) => engines.tenon.milliseconds);
    assert.ok(add4 < start, `${add4} ms, ${start} ms`);
  });
}
