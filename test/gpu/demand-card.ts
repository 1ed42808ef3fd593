/** Opens the card and ends; without one a line that says why, and exit code 2. */
import { messageOf } from "../../src/assert";
import { openCuda } from "./support/devices";

try {
  openCuda().close();
} catch (error) {
  console.error(`no GPU to test: ${messageOf(error)}`);
  process.exit(2);
}
