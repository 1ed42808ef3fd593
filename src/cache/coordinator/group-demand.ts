/**
 * What one group must hold for the round ahead. Two shapes in two frames of
 * reference: dense growth appends tokens to what the table holds; a sparse suffix
 * names the absolute end and the first slot to materialise, slots below stay holes.
 */
export class GroupDemand {
  /** Dense: tokens to add. Sparse: tokens from the beginning of the request to the end of the extent. */
  tokens = 0;
  /** First slot of a sparse suffix; -1 for dense growth. */
  firstBlock = -1;
  /** Tokens beyond the extent for which room is secured. */
  reserveTokens = 0;

  denseGrowth(tokens: number, reserveTokens: number): this {
    this.tokens = tokens;
    this.firstBlock = -1;
    this.reserveTokens = reserveTokens;
    return this;
  }

  sparseSuffix(extentTokens: number, firstBlock: number, reserveTokens: number): this {
    this.tokens = extentTokens;
    this.firstBlock = firstBlock;
    this.reserveTokens = reserveTokens;
    return this;
  }
}
