// @ts-check

/**
 * What `GET /` says: everything there is to try, ready to paste.
 *
 * @param {string} server
 * @param {number} port
 * @param {readonly number[]} ports of all servers
 */
export const help = (server, port, ports) => {
  const url = `http://localhost:${port}`
  return `Sluice on ${server}. Paste these:

  # not limited
  curl -i ${url}/open

  # 5 per 10 s per IP address: the sixth answers 429 and says when to come back
  for i in 1 2 3 4 5 6; do curl -si ${url}/limited; echo; done

  # 2 per second and 10 per minute, all or none: what one limit refuses, the other is not charged for
  for i in 1 2 3; do curl -si ${url}/several; echo; done

  # each request charges its units, of 20 per minute; 21 can never fit; 0 only looks
  curl -i '${url}/costly?units=15'
  curl -i '${url}/costly?units=6'
  curl -i '${url}/costly?units=21'
  curl -i '${url}/costly?units=0'

  # one limit, 10 per 10 s, for all three servers together
  for i in 1 2 3 4; do for port in ${ports.join(' ')}; do curl -s http://localhost:$port/together; echo; done; done
`
}
