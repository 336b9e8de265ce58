// The worker of the module's thread pool as a file, for pages whose policy allows no blobs.
import {startWorker, type WorkerTask} from './start-worker.js';

globalThis.onmessage = ({data}: MessageEvent<WorkerTask>) => void startWorker(data);
