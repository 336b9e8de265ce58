// All of a session except what the application holds: the queue of its runs, its end, and a new
// model if its context is lost or cannot build a partition.
import {ProviderUnavailable} from '../common/backend.js';
import {Counters} from '../common/counters.js';
import {messageOf} from '../common/error-message.js';
import type {InferenceSession, Tensor} from '../common/index.js';
import type {CoreSession} from '../src/core-session.js';
import {andThen, type NowOrLater, orElse, withCleanup} from '../src/now-or-later.js';
import {acquireDevice, type Device, type Lease} from './device.js';
import {BuildError, type ModelSource, PartitionedModel} from './partitioned-model.js';
import {Request} from './request.js';
import {type Pending, Run} from './run.js';
import {ownerOf} from './tensor-cache.js';

type Results = Record<string, Tensor>;

// A run that has issued all its work.
interface IssuedRun {
  readonly run: Run;
  readonly device: Device;
  readonly pending: readonly Pending[];
}

function lossError(message: string): Error {
  return new Error(`InferenceSession.run: the WebNN context is lost: ${message}`);
}

// The error of a run that failed on a device.
async function failureOn(device: Device, error: unknown): Promise<unknown> {
  const loss = await device.lossAfterFailure();
  return loss === undefined ? error : lossError(loss);
}

export class SessionState {
  readonly #counters: Counters;
  // First nodes of the partitions that stay on the CPU.
  readonly #excluded: string[] = [];
  // The next run awaits this; undefined if it need not.
  #queue: Promise<unknown> | undefined;
  readonly #unsettled = new Set<Promise<unknown>>();
  // Results that are being read.
  readonly #settling = new Set<Promise<unknown>>();
  #isReleased = false;
  #isOwnContext = false;
  #model!: PartitionedModel;

  private constructor(
    readonly loadSource: () => Promise<ModelSource>,
    readonly provider: InferenceSession.WebNNOptions,
    readonly logId: string,
  ) {
    this.#counters = new Counters(logId);
  }

  // `loadSource` is called again if the session needs another model.
  static async open(
    loadSource: () => Promise<ModelSource>,
    provider: InferenceSession.WebNNOptions,
    logId: string,
  ): Promise<SessionState> {
    const state = new SessionState(loadSource, provider, logId);
    try {
      await state.#openModel();
      return state;
    } catch (error) {
      state.#counters.close();
      throw error;
    }
  }

  get session(): CoreSession {
    return this.#model.session;
  }

  checkLive(operation: string): void {
    if (this.#isReleased) throw new Error(`${operation}: the session is released`);
  }

  run(
    feeds: Readonly<Record<string, Tensor>>,
    fetches: Readonly<Record<string, Tensor | null>>,
    options: InferenceSession.RunOptions,
  ): Promise<Results> {
    const run = this.#run(feeds, fetches, options);
    this.#unsettled.add(run);
    const forget = () => this.#unsettled.delete(run);
    run.then(forget, forget);
    return run;
  }

  // Waits for the runs that were called, and frees all of the session except what is lent.
  async release(): Promise<void> {
    this.#isReleased = true;
    await Promise.allSettled(this.#unsettled);
    this.#counters.close();
    this.#model.close();
  }

  async #run(
    feeds: Readonly<Record<string, Tensor>>,
    fetches: Readonly<Record<string, Tensor | null>>,
    options: InferenceSession.RunOptions,
  ): Promise<Results> {
    this.checkLive('InferenceSession.run');
    const request = new Request(feeds, fetches, options);
    const held = Array.from(
      request.feeds.values(),
      ({mlTensor}) => (mlTensor && ownerOf(mlTensor)) ?? [],
    ).flat();
    held.forEach((owned) => owned.hold());
    const model = this.#model;
    const {cache, device} = model;
    cache.beginRun();
    const isKnownLost = device.lossMessage !== undefined;
    const issue = () => {
      if (device.lossMessage !== undefined && !isKnownLost) throw lossError(device.lossMessage);
      return this.#issue(request);
    };
    const release = () => held.forEach((owned) => owned.unhold());
    try {
      const issued = this.#enqueue(() => withCleanup(issue, release));
      if (issued instanceof Promise) request.keep();
      return await this.#settle(issued instanceof Promise ? await issued : issued);
    } finally {
      cache.endRun();
    }
  }

  // Begins at once if nothing is before it.
  #enqueue<Result>(body: () => NowOrLater<Result>): NowOrLater<Result> {
    const result = this.#queue === undefined ? body() : this.#queue.then(body);
    if (!(result instanceof Promise)) return result;
    // Without the results, which only the application may keep alive.
    const forget = () => {
      if (this.#queue === last) this.#queue = undefined;
    };
    const last: Promise<void> = result.then(forget, forget);
    this.#queue = last;
    return result;
  }

  #issue(request: Request): NowOrLater<IssuedRun> {
    const {lossMessage} = this.#model.device;
    if (lossMessage === undefined) return this.#attempt(request);
    if (!this.#isOwnContext) throw lossError(lossMessage);
    return this.#reopen().then(() => this.#attempt(request));
  }

  #attempt(request: Request): NowOrLater<IssuedRun> {
    const {device} = this.#model;
    const run = new Run(this.#model, request);
    request.reader = run;
    return orElse(
      () => andThen(run.issue(), (pending) => ({run, device, pending})),
      async (error) => {
        run.end(true);
        if (!(error instanceof BuildError)) throw await failureOn(device, error);
        this.#exclude(error);
        await this.#reopen();
        return this.#attempt(request);
      },
    );
  }

  async #settle({run, device, pending}: IssuedRun): Promise<Results> {
    const results = run.settle(pending);
    this.#settling.add(results);
    let isFailed = true;
    try {
      const tensors = await results;
      isFailed = false;
      return tensors;
    } catch (error) {
      throw await failureOn(device, error);
    } finally {
      this.#settling.delete(results);
      run.end(isFailed);
    }
  }

  // Replaces the present model by another one.
  async #reopen(): Promise<void> {
    await Promise.allSettled(this.#settling);
    const before = this.#model;
    await this.#openModel();
    before.close();
  }

  async #acquire(): Promise<Lease> {
    try {
      return await acquireDevice(this.provider);
    } catch (error) {
      throw new ProviderUnavailable(messageOf(error), {cause: error});
    }
  }

  async #openModel(): Promise<void> {
    let failed: PartitionedModel | undefined;
    for (;;) {
      // Not earlier, because the context would be destroyed with it.
      const lease = await this.#acquire().finally(() => failed?.close());
      const model = await this.#openOn(lease);
      const failures = await model.buildStatic().catch((error) => {
        model.close();
        throw error;
      });
      if (failures.length === 0) {
        this.#isOwnContext = lease.isOwn;
        this.#model = model;
        return;
      }
      failed = model;
      try {
        failures.forEach((failure) => this.#exclude(failure));
      } catch (error) {
        model.close();
        throw error;
      }
    }
  }

  async #openOn(lease: Lease): Promise<PartitionedModel> {
    try {
      const source = await this.loadSource();
      return PartitionedModel.open(source, lease.device, this.#excluded, this.#counters, () =>
        lease.release(),
      );
    } catch (error) {
      lease.release();
      throw error;
    }
  }

  #exclude({firstNode, message, cause}: BuildError): void {
    if (this.#excluded.includes(firstNode)) {
      throw new Error(`WebNN: the partition at node '${firstNode}' is built again: ${message}`, {
        cause,
      });
    }
    console.warn(`WebNN: the partition at node '${firstNode}' runs on the CPU: ${message}`);
    this.#excluded.push(firstNode);
  }
}
