/** No key is longer: long identities are hashed (`checkedKey`). Keys of blocks have the policy before the identity. */
const LONGEST = 1024
const FACTORS = crypto.getRandomValues(new Int32Array(LONGEST + 1))

/**
 * 25 bits of a key: the sum of its characters, each times a secret factor of its place (multilinear hashing;
 * Lemire and Kaser, "Strongly universal string hashing is fast"). Clients choose their keys, and must not be able
 * to choose many that meet in one chain. Without the factors they cannot; the low bits, which are weaker, are dropped.
 */
export function keyHash(key: string): number {
  const length = Math.min(key.length, LONGEST)
  let sum = Math.imul(FACTORS[0] as number, key.length)
  for (let i = 0; i < length; i++) sum = (sum + Math.imul(FACTORS[i + 1] as number, key.charCodeAt(i))) | 0
  return sum >>> 7
}
