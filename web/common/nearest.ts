// How many letters must be added, removed or replaced to turn one text into the other.
function editDistance(a: string, b: string): number {
  let row = Array.from({length: b.length + 1}, (_, j) => j);
  for (let i = 1; i <= a.length; ++i) {
    const next = [i];
    for (let j = 1; j <= b.length; ++j) {
      const replaced = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j] + 1, next[j - 1] + 1));
    }
    row = next;
  }
  return row[b.length];
}

// "; did you mean 'image'?" with the known name that is nearest to a wrong one; "" if there is
// none.
export function didYouMean(wrong: string, known: readonly string[]): string {
  if (known.length === 0) return '';
  const distances = known.map((name) => editDistance(wrong, name));
  return `; did you mean '${known[distances.indexOf(Math.min(...distances))]}'?`;
}
