/** An acquisition in blocks, worked out by the coordinator and carried out blindly by a GroupAllocator. */
export class AcquirePlan {
  /** Fresh blocks to take. */
  numBlocks = 0;
  /**
   * Slot of the first fresh block; slots between the table's end and it stay holes. -1: right behind the end.
   */
  suffixStart = -1;
  /** Length of the table afterwards. */
  tableBlocksAfter = 0;
  /** Stored in the table verbatim. */
  availableTokensAfter = 0;
}
