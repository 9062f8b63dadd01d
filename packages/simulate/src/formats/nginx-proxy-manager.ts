import type { LogFormat } from './format.js'
import { nginxFormat } from './nginx-format.js'

const BEFORE = '[$time_local] '
const REQUEST =
  '$status - $request_method $scheme $host "$request_uri" [Client $remote_addr] [Length $body_bytes_sent] [Gzip $gzip_ratio] '
const AFTER = '"$http_user_agent" "$http_referer"'

/**
 * Nginx Proxy Manager: hosts that are proxied, and those that redirect or are dead:
 * https://github.com/NginxProxyManager/nginx-proxy-manager/blob/develop/docker/rootfs/etc/nginx/conf.d/include/log-proxy.conf
 */
export const NGINX_PROXY_MANAGER: readonly LogFormat[] = [
  nginxFormat(
    `${BEFORE}$upstream_cache_status $upstream_status ${REQUEST}[Sent-to $server] ${AFTER}`,
    'nginx-proxy-manager',
  ),
  nginxFormat(`${BEFORE}${REQUEST}${AFTER}`, 'nginx-proxy-manager-standard'),
]
