# Stands in for the official Python image where no registry is at hand: a Debian, and its Python by the name of `python`.
FROM scratch
ADD base.tar /
# Empty, so that a build can lay the machine's own over it and nothing of that stays.
COPY pip.conf /etc/pip.conf
ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
CMD ["python3"]
