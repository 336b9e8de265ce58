// Results that are there at once if nothing has to be awaited. A run that awaits nothing is issued
// within the call, and so reads its feeds there.

export type NowOrLater<Result> = Result | Promise<Result>;

// Calls `next` with the result: at once if it is there.
export function andThen<First, Result>(
  first: NowOrLater<First>,
  next: (result: First) => NowOrLater<Result>,
): NowOrLater<Result> {
  return first instanceof Promise ? first.then(next) : next(first);
}

// The result of `body`, or that of `recover` if it fails now or later.
export function orElse<Result>(
  body: () => NowOrLater<Result>,
  recover: (error: unknown) => NowOrLater<Result>,
): NowOrLater<Result> {
  let result;
  try {
    result = body();
  } catch (error) {
    return recover(error);
  }
  return result instanceof Promise ? result.catch(recover) : result;
}

// Returns the result of `body`, and calls `cleanUp` after it or after the promise that it returns.
export function withCleanup<Result>(body: () => Result, cleanUp: () => void): Result {
  let result: Result;
  try {
    result = body();
  } catch (error) {
    cleanUp();
    throw error;
  }
  if (result instanceof Promise) return result.finally(cleanUp) as Result;
  cleanUp();
  return result;
}
