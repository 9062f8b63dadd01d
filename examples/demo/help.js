// @ts-check

/**
 * The text of `GET /`: all commands to try, ready to paste.
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

  # each request charges its units, 1 or more, of 20 per minute; 21 can never fit
  curl -i '${url}/costly?units=15'
  curl -i '${url}/costly?units=6'
  curl -i '${url}/costly?units=21'

  # one limit, 10 per 10 s, for all three servers together
  for i in 1 2 3 4; do for port in ${ports.join(' ')}; do curl -s http://localhost:$port/together; echo; done; done

  # 2 at once, then one every 5 s: delayed, not refused
  for i in 1 2 3; do curl -s -w ' after %{time_total} s\\n' ${url}/slow; done

  # 2 per second; the others wait in a queue, and a key of a paying customer goes first
  for i in 1 2 3 4 5 6; do curl -so /dev/null -w 'low, after %{time_total} s\\n' ${url}/queue & done; \\
    sleep 0.1; curl -so /dev/null -w 'gold, after %{time_total} s\\n' -H 'x-api-key: gold' ${url}/queue; wait

  # 1 MiB: 256 KiB at once, the rest at 256 KiB per second
  curl -so /dev/null -w '%{size_download} bytes in %{time_total} s\\n' ${url}/download

  # at most 2 in flight, each for 2 s: the third answers 429
  for i in 1 2 3; do curl -so /dev/null -w '%{http_code}\\n' ${url}/busy & done; wait

  # 2 per 10 s, reported only: the third would be refused, says its verdict, and passes
  for i in 1 2 3; do curl -si ${url}/reported; echo; done

  # 3 per minute; after 5 refusals the address is banned for 2 minutes, then for 10: the console shows it
  for i in 1 2 3 4 5 6 7 8 9; do curl -so /dev/null -w '%{http_code}\\n' -X POST ${url}/password; done

  # by examples/demo/policies.yaml: edit it, save it, and ask again
  for i in 1 2 3 4; do curl -si ${url}/policies/search; echo; done

  # where state is in Redis: stop it, and this goes on, of kind "unavailable" and without quota, until it is back
  for i in 1 2 3; do curl -si ${url}/limited; echo; done

  # what Prometheus reads: of the process, so the same on every server
  curl -s ${url}/metrics | grep ^sluice_requests

  # 2 per 10 s: the third looks like the others, but the handler did not run
  for i in 1 2 3; do curl -si -X POST ${url}/login; echo; done; curl -s ${url}/login
`
}
