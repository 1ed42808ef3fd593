/** The integers by which the cache names things. All travel as int32; 0 never names a real block. */

/** Dense index of a cache group: its position in the configuration. */
export type GroupId = number;

/** One LCM block (a parent), 1..numLcmBlocks. 0 is the null block. */
export type LcmBlockId = number;

/**
 * One CacheBlock of one group: `1 + (parent - 1) * cacheBlocksPerLcmBlock + slot`. Meaningful only together
 * with its group and its tier. 0 is a hole in a table.
 */
export type BlockId = number;
