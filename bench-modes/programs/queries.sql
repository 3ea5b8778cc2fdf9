-- Rows in, a group-by, a join, and text in order. :rows stands for the number of rows.
create table orders (id integer primary key, customer integer, product integer, amount integer, note text);
create table customers (id integer primary key, region integer, name text);
begin;
with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < :rows)
insert into orders select i, i * 7919 % (:rows / 20 + 1), i * 104729 % 997, i * 31 % 1009, printf('order %d of %d', i % 101, i) from n;
with recursive n(i) as (select 0 union all select i + 1 from n where i < :rows / 20)
insert into customers select i, i % 23, printf('customer %d', i * 7 % 1000) from n;
commit;
create index by_customer on orders (customer);
select product, count(*), sum(amount), max(note) from orders group by product order by product;
select region, count(*), sum(amount) from customers join orders on orders.customer = customers.id group by region order by region;
select id, note from orders order by note desc, id limit 100;
