-- Orders and their lines: inserts, indexes, joins, updates, deletes, text functions. The parameter
-- table `size(rows)` is made by the caller before this file is read.
PRAGMA temp_store = MEMORY;
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, note TEXT, at INTEGER);
CREATE TABLE line(orders INTEGER, article TEXT, pieces INTEGER, price REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n, size WHERE i < size.rows / 10)
INSERT INTO customer SELECT i, printf('customer %d', i), printf('city %d', i * 7919 % 300) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n, size WHERE i < size.rows)
INSERT INTO orders SELECT i, 1 + i * 7 % (SELECT rows / 10 FROM size),
  substr(hex(zeroblob(i % 40)) || printf('note %d', i), 1, 20 + i % 60), i * 31 % 100000 FROM n;
INSERT INTO line SELECT id, printf('article %d', id * 17 % 5000), id % 9, id * 0.5 FROM orders;
INSERT INTO line SELECT id, printf('article %d', id * 29 % 5000), id % 5, id * 0.25 FROM orders;
CREATE INDEX orders_by_customer ON orders(customer, at);
CREATE INDEX line_by_orders ON line(orders);
CREATE INDEX line_by_article ON line(article);
SELECT city, count(*), round(sum(pieces * price))
  FROM customer JOIN orders ON orders.customer = customer.id JOIN line ON line.orders = orders.id
  GROUP BY city ORDER BY 3 DESC LIMIT 3;
SELECT count(*) FROM (SELECT article, group_concat(orders) AS those FROM line GROUP BY article)
  WHERE length(those) > 10;
UPDATE orders SET note = upper(note) || ' again' WHERE at % 3 = 0;
DELETE FROM line WHERE orders % 4 = 0;
SELECT count(DISTINCT substr(note, 1, 12)), sum(length(note)) FROM orders;
SELECT count(*) FROM orders a JOIN orders b ON a.customer = b.customer AND a.at < b.at;
SELECT json_extract(json_group_array(json_object('id', id, 'note', note)), '$[5].note') FROM orders;
