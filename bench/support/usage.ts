/** How a measurement that was started wrongly ends: one line, exit code 2. */
export function exitWith(message: string): never {
  console.error(message);
  process.exit(2);
}
