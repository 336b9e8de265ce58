// The type of instances of a global class, or `Fallback` if the program's libraries do not declare
// it.
export type GlobalType<Name extends string, Fallback = unknown> = typeof globalThis extends {
  [name in Name]: {prototype: infer Instance};
}
  ? Instance
  : Fallback;
