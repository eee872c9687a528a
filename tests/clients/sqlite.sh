#!/usr/bin/env bash
# sqlite3 on a generated database: 200000 rows, indices, joins, updates, deletes, vacuum, checks.
. "$(dirname "$0")/common.sh"

bound sqlite3 :memory: 'select 1'
preloaded sqlite3 data.db <<'SQL'
PRAGMA journal_mode = WAL;
CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, town INTEGER, born INTEGER, note TEXT);
CREATE TABLE town (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
INSERT INTO town WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
  SELECT i, 'town ' || (i * 7919 % 1009) FROM n;
INSERT INTO person WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
  SELECT i, printf('name %08d', i * 48271 % 199999), i * 16807 % 1000 + 1, 1900 + i * 37 % 120,
         substr(hex(i * 2654435761), 1, i % 13) || printf('%.*c', i % 90, 'n') FROM n;
CREATE INDEX person_name ON person (name);
CREATE INDEX person_town ON person (town, born);
SELECT count(*), sum(id), sum(length(note)), min(name), max(name) FROM person;
SELECT town.name, count(*), avg(born), group_concat(person.id % 10, '') FROM person
  JOIN town ON town.id = person.town WHERE born > 1990 GROUP BY town.name ORDER BY 2 DESC, 1 LIMIT 20;
UPDATE person SET note = note || note || name WHERE id % 7 = 0;
DELETE FROM person WHERE id % 5 = 3;
SELECT substr(name, 6, 3) AS head, count(*), sum(length(note)) FROM person
  GROUP BY head ORDER BY head LIMIT 40;
WITH ranked AS (SELECT id, town, rank() OVER (PARTITION BY town ORDER BY name) AS place FROM person)
  SELECT place, count(*), sum(id) FROM ranked WHERE place <= 5 GROUP BY place;
SELECT json_group_array(json_object('id', id, 'name', name)) FROM
  (SELECT * FROM person ORDER BY name LIMIT 50);
VACUUM;
REINDEX;
ANALYZE;
PRAGMA integrity_check;
PRAGMA foreign_key_check;
SELECT count(*), sum(id), sum(length(note)) FROM person;
SQL
preloaded sqlite3 data.db .dump | sha256sum
