// The timeline of a context: steps that take effect one after another, in the order of the calls.

export interface Step {
  // Milliseconds that the emulated device takes.
  readonly duration: number;
  run(): void;
  // Called instead of `run` if the context is lost before.
  abort(): void;
}

export class Timeline {
  #steps: Step[] = [];
  #isDraining = false;

  enqueue(step: Step): void {
    this.#steps.push(step);
    if (this.#isDraining) return;
    this.#isDraining = true;
    queueMicrotask(() => this.#drain());
  }

  // Drops the steps that have not run.
  abort(): void {
    const steps = this.#steps;
    this.#steps = [];
    for (const step of steps) step.abort();
  }

  // A step stays first in the queue while the device works on it.
  async #drain(): Promise<void> {
    for (let step = this.#steps[0]; step !== undefined; step = this.#steps[0]) {
      if (step.duration > 0) {
        const {duration} = step;
        await new Promise((resolve) => setTimeout(resolve, duration));
        if (this.#steps[0] !== step) continue; // the context was lost meanwhile
      }
      this.#steps.shift();
      step.run();
    }
    this.#isDraining = false;
  }
}
