// Measures one case on one engine in this process, and prints JSON: see compare.mjs.
import path from 'node:path';
import {pathToFileURL} from 'node:url';

import {measure} from './case.mjs';

const task = JSON.parse(process.argv[2]);
const result = await measure(task, pathToFileURL(task.entry), task.models + path.sep);
console.log(JSON.stringify({...result, residentBytes: process.memoryUsage().rss}));
process.exit();
