/** Small integer arithmetic of the packing solver. */

export function gcd(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}

export function lcm(...values: readonly number[]): number {
  return values.reduce((product, value) => (product / gcd(product, value)) * value, 1);
}

export function alignUp(value: number, alignment: number): number {
  return Math.ceil(value / alignment) * alignment;
}

/** A positive fraction in lowest terms. */
export interface Rational {
  readonly numerator: number;
  readonly denominator: number;
}

export function rational(numerator: number, denominator: number): Rational {
  const divisor = gcd(numerator, denominator);
  return { numerator: numerator / divisor, denominator: denominator / divisor };
}

export function multiply(a: Rational, b: Rational): Rational {
  return rational(a.numerator * b.numerator, a.denominator * b.denominator);
}

export function equal(a: Rational, b: Rational): boolean {
  return a.numerator === b.numerator && a.denominator === b.denominator;
}
