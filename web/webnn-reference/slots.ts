// The internal slots of objects of an interface, which applications cannot construct or forge.
export class Slots<Interface extends object, State> {
  readonly #states = new WeakMap<object, State>();

  constructor(readonly name: string) {}

  create(prototype: Interface, state: State): Interface {
    const object = Object.create(prototype) as Interface;
    this.#states.set(object, state);
    return object;
  }

  attach(object: Interface, state: State): void {
    this.#states.set(object, state);
  }

  // The slots of `value`, which must be an object of the interface.
  of(value: unknown, what: string): State {
    const state = this.#states.get(value as object);
    if (state === undefined) throw new TypeError(`${what}: expected an ${this.name}`);
    return state;
  }
}

export function illegalConstructor(): never {
  throw new TypeError('Illegal constructor');
}
