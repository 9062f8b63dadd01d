/** An older cookie-parser under an alias; it has the types of the newest. */
declare module 'cookie-parser146' {
  import cookieParser from 'cookie-parser'
  export default cookieParser
}
