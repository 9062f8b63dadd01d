-- Policies and overrides in PostgreSQL 13 or later: version 1 of the tables of @sluice/policies.
--
-- `sluice migrate` runs this. By hand, into the first schema of search_path, by a role that then owns the tables:
--   psql --single-transaction --set ON_ERROR_STOP=1 --file postgres-1.sql
-- It may run again: it changes nothing then. docs/policies-in-postgres.md says which roles need which grants.

CREATE TABLE IF NOT EXISTS sluice_migrations (
  version integer PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One row for each version of a document. The highest version of a name is in force.
CREATE TABLE IF NOT EXISTS sluice_policies (
  name text NOT NULL CHECK (name ~ '^[A-Za-z0-9_-]{1,64}$'),
  version bigint NOT NULL CHECK (version > 0),
  document text NOT NULL CHECK (length(document) <= 16777216),
  author text NOT NULL DEFAULT '' CHECK (length(author) <= 100),
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (name, version)
);

-- Orders changes of overrides. One value at a time: a session that kept some for later would hand them out in another order.
CREATE SEQUENCE IF NOT EXISTS sluice_change CACHE 1;

-- What is different for single clients. The trigger sets author, at, hash and version, whatever is written to them.
CREATE TABLE IF NOT EXISTS sluice_overrides (
  name text NOT NULL DEFAULT 'default' CHECK (name ~ '^[A-Za-z0-9_-]{1,64}$'),
  policy text NOT NULL CHECK (policy ~ '^[A-Za-z0-9_-]{1,64}$'),
  kind text NOT NULL CHECK (kind ~ '^[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9_.!#$&''*+^`|~-]{1,200})?$'),
  value text NOT NULL CHECK (octet_length(value) BETWEEN 1 AND 1024),
  limits jsonb NOT NULL CHECK (jsonb_typeof(limits) = 'array' AND length(limits::text) <= 10000),
  until timestamptz,
  reason text CHECK (length(reason) <= 200),
  author text NOT NULL DEFAULT '',
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  hash bigint NOT NULL DEFAULT 0,
  version bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (name, policy, kind, value)
);
CREATE UNIQUE INDEX IF NOT EXISTS sluice_overrides_version ON sluice_overrides (name, version);
CREATE INDEX IF NOT EXISTS sluice_overrides_hash ON sluice_overrides (name, hash);

-- Overrides that are gone, for a day: processes learn of them here. Without a hash: all of the name.
CREATE TABLE IF NOT EXISTS sluice_removed (
  version bigint PRIMARY KEY,
  name text NOT NULL,
  hash bigint,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS sluice_removed_version ON sluice_removed (name, version);
CREATE INDEX IF NOT EXISTS sluice_removed_at ON sluice_removed (at);

-- The functions run with the rights of their owner, so that who may write overrides needs no other right. They name the schema of
-- their table in full, and no other user may make triggers of them.

-- Until its transaction ends, no other transaction changes overrides: what is seen last has the highest version.
CREATE OR REPLACE FUNCTION sluice_before_overrides() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock((1936487777::bigint << 32) | TG_RELID::bigint);
  IF TG_OP = 'TRUNCATE' THEN
    EXECUTE format(
      'INSERT INTO %1$I.sluice_removed (version, name)
       SELECT nextval(%2$L), name FROM (SELECT DISTINCT name FROM %1$I.sluice_overrides) AS names',
      TG_TABLE_SCHEMA, format('%I.sluice_change', TG_TABLE_SCHEMA));
  ELSIF TG_OP = 'DELETE' THEN
    EXECUTE format('DELETE FROM %I.sluice_removed WHERE at < now() - interval ''1 day''', TG_TABLE_SCHEMA);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION sluice_each_override() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  change CONSTANT regclass := format('%I.sluice_change', TG_TABLE_SCHEMA)::regclass;
  address inet;
  identity text;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    IF NEW.kind ~* '^header:' THEN
      NEW.kind := lower(NEW.kind);
    END IF;
    identity := NEW.value;
    IF NEW.kind = 'ip' THEN
      address := NEW.value::inet;
      IF masklen(address) <> (CASE family(address) WHEN 4 THEN 32 ELSE 128 END) THEN
        RAISE EXCEPTION 'sluice_overrides: value: expected one address, got %; ranges stay in the document', NEW.value
          USING ERRCODE = 'check_violation';
      END IF;
      -- IPv4-mapped and NAT64 IPv6 addresses count as IPv4.
      IF family(address) = 6 AND address << inet '::ffff:0:0/96' THEN
        address := inet '0.0.0.0' + (address - inet '::ffff:0:0');
      ELSIF family(address) = 6 AND address << inet '64:ff9b::/96' THEN
        address := inet '0.0.0.0' + (address - inet '64:ff9b::');
      END IF;
      NEW.value := host(address);
      identity := encode(substring(inet_send(address) FROM 5), 'hex');
    ELSIF NEW.kind ~ '^((header|cookie):|credentials$)' AND NEW.value !~ '^sha256:[0-9a-f]{64}$' THEN
      RAISE EXCEPTION 'sluice_overrides: value: expected sha256: and 64 hexadecimal digits, as printf %%s VALUE | sha256sum prints it'
        USING ERRCODE = 'check_violation';
    END IF;
    NEW.author := session_user;
    NEW.at := clock_timestamp();
    NEW.hash := ('x' || encode(substring(sha256(convert_to(
      NEW.policy || chr(10) || NEW.kind || chr(10) || identity, 'UTF8')) FROM 1 FOR 8), 'hex'))::bit(64)::bigint;
  END IF;
  IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND (OLD.name, OLD.hash) IS DISTINCT FROM (NEW.name, NEW.hash) THEN
    EXECUTE format('INSERT INTO %I.sluice_removed (version, name, hash) VALUES ($1, $2, $3)', TG_TABLE_SCHEMA)
      USING nextval(change), OLD.name, OLD.hash;
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  NEW.version := nextval(change);
  RETURN NEW;
END $$;

-- Without a version, so that the many changes of one transaction are one notification: who listens asks for what is newer.
CREATE OR REPLACE FUNCTION sluice_after_overrides() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_notify('sluice_policies', 'overrides');
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION sluice_each_policies() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    RAISE EXCEPTION 'sluice_policies: a version never changes: insert the next one' USING ERRCODE = 'check_violation';
  END IF;
  PERFORM pg_notify('sluice_policies', 'policies ' || COALESCE(NEW.name, OLD.name) || ' ' || COALESCE(NEW.version, OLD.version));
  RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION
  sluice_before_overrides(), sluice_each_override(), sluice_after_overrides(), sluice_each_policies() FROM PUBLIC;

DROP TRIGGER IF EXISTS sluice_before ON sluice_overrides;
CREATE TRIGGER sluice_before BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON sluice_overrides
  FOR EACH STATEMENT EXECUTE FUNCTION sluice_before_overrides();
DROP TRIGGER IF EXISTS sluice_each ON sluice_overrides;
CREATE TRIGGER sluice_each BEFORE INSERT OR UPDATE OR DELETE ON sluice_overrides
  FOR EACH ROW EXECUTE FUNCTION sluice_each_override();
DROP TRIGGER IF EXISTS sluice_after ON sluice_overrides;
CREATE TRIGGER sluice_after AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON sluice_overrides
  FOR EACH STATEMENT EXECUTE FUNCTION sluice_after_overrides();
DROP TRIGGER IF EXISTS sluice_each ON sluice_policies;
CREATE TRIGGER sluice_each AFTER INSERT OR UPDATE OR DELETE ON sluice_policies
  FOR EACH ROW EXECUTE FUNCTION sluice_each_policies();

INSERT INTO sluice_migrations (version) VALUES (1) ON CONFLICT DO NOTHING;
